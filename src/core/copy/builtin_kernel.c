/* SPDX-License-Identifier: Apache-2.0 */
#include "builtin_kernel.h"

#include "core/base/log.h"

#define CT_CHANNEL "copy"

CUresult ct_builtin_kernel_create(struct ct_device *device, const char *text, size_t size_bytes, const char *name,
                                  struct ct_kernel_image **out)
{
    const struct ptx2spv_options options = {0};
    struct ptx2spv_target plain = device->info.target;
    struct ptx2spv_module *module = NULL;
    struct ptx2spv_kernel kernel;
    enum ptx2spv_status status;
    CUresult r;

    plain.pointer_rule = PTX2SPV_POINTER_SAME;
    status = ptx2spv_module_create(text, size_bytes, &options, &module);
    if (status == PTX2SPV_OK)
        status = ptx2spv_kernel_compile(module, 0, &plain, &options, &kernel);
    ptx2spv_module_destroy(module);
    if (status != PTX2SPV_OK)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the kernel %s does not compile: %s", name, ptx2spv_status_string(status));
    r = kernel.info.params_in_buffer ? ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the parameters of the kernel %s do not fit", name)
                                     : device->backend->kernels->create(device->opened, name, &kernel, out);
    ptx2spv_kernel_finish(&kernel);
    return r;
}
