/* SPDX-License-Identifier: Apache-2.0 */
#include "builtin_kernel.h"

#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "copy"

CUresult ct_builtin_kernel_create(struct ct_device *device, const struct ct_builtin_source *source, struct ct_kernel_image **out)
{
    const struct ptx2spv_options options = {0};
    struct ptx2spv_target target = device->info.target;
    struct ptx2spv_module *module = NULL;
    struct ptx2spv_kernel kernel;
    enum ptx2spv_status status;
    CUresult r;

    if (!source->takes_cuda_addresses)
        target.pointer_rule = PTX2SPV_POINTER_SAME;
    status = ptx2spv_module_create(source->text, strlen(source->text), &options, &module);
    if (status == PTX2SPV_OK)
        status = ptx2spv_kernel_compile(module, source->entry, &target, &options, &kernel);
    ptx2spv_module_destroy(module);
    if (status != PTX2SPV_OK)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the kernel %s does not compile: %s", source->name, ptx2spv_status_string(status));
    r = kernel.info.params_in_buffer ? ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the parameters of the kernel %s do not fit", source->name)
                                     : device->backend->kernels->create(device->opened, source->name, &kernel, out);
    ptx2spv_kernel_finish(&kernel);
    return r;
}

static struct ct_builtin_kernels *find_or_null(_Atomic(struct ct_builtin_kernels *) *kernels)
{
    struct ct_builtin_kernels *before = atomic_load_explicit(kernels, memory_order_acquire); /* pairs with the exchange */
    struct ct_builtin_kernels *made;

    if (before || !(made = calloc(1, sizeof *made)))
        return before;
    if (atomic_compare_exchange_strong(kernels, &before, made))
        return made;
    free(made);
    return before;
}

struct ct_kernel_image *ct_builtin_kernel_or_null(struct ct_device *device, _Atomic(struct ct_builtin_kernels *) *kernels,
                                                  const struct ct_builtin_source *sources, unsigned index)
{
    struct ct_builtin_kernels *all = find_or_null(kernels);
    struct ct_kernel_image *made, *before = NULL;

    if (!all || (before = atomic_load_explicit(&all->images[index], memory_order_acquire)) != NULL) /* pairs with the exchange */
        return before;
    if (ct_builtin_kernel_create(device, &sources[index], &made) != CUDA_SUCCESS)
        return NULL;
    if (atomic_compare_exchange_strong(&all->images[index], &before, made))
        return made;
    device->backend->kernels->destroy(made);
    return before;
}

void ct_builtin_kernels_destroy(struct ct_device *device, _Atomic(struct ct_builtin_kernels *) *kernels)
{
    struct ct_builtin_kernels *all = atomic_exchange(kernels, NULL);

    for (unsigned i = 0; all && i < CT_BUILTIN_KERNELS; i++)
        device->backend->kernels->destroy(atomic_load(&all->images[i]));
    free(all);
}
