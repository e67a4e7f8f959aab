/* SPDX-License-Identifier: Apache-2.0 */
/* Creates code: reads an image and parses its PTX. */
#include "code.h"

#include "core/base/float_environment.h"
#include "image.h"
#include "core/base/log.h"
#include "ptx_dir.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "module"

static void free_code(struct ct_object *object)
{
    struct ct_code *code = (struct ct_code *)object;

    ct_managed_variables_finish(&code->managed);
    ptx2spv_module_destroy(code->ptx);
    free(code);
}

/* Adds the texts of an image in their order, and links the module. */
static enum ptx2spv_status link_texts(struct ptx2spv_linker *linker, const struct ct_image *image, const struct ptx2spv_options *options,
                                      struct ptx2spv_module **out)
{
    enum ptx2spv_status status = PTX2SPV_OK;

    for (unsigned i = 0; i < image->count && status == PTX2SPV_OK; i++) {
        const struct ct_ptx *ptx = &image->texts[i];
        const struct ptx2spv_input input = {.text = ptx->text, .length = ptx->length, .name = ptx->name};

        status = ptx2spv_linker_add(linker, &input, options);
    }
    return status == PTX2SPV_OK ? ptx2spv_linker_finish(linker, options, out) : status;
}

/* All that decides what the module is. Names of inputs are only in messages. */
static struct ct_hash hash_texts(const struct ct_image *image)
{
    struct ct_hash hash = {0, 0};

    for (unsigned i = 0; i < image->count; i++) {
        const struct ct_ptx *ptx = &image->texts[i];
        const struct ct_bytes parts[] = {{&hash, sizeof hash}, {ptx->text, strnlen(ptx->text, ptx->length)}};

        hash = ct_hash_parts(parts, 2);
    }
    return hash;
}

CUresult ct_code_link_failure(enum ptx2spv_status status, unsigned n_without_ptx)
{
    if (status != PTX2SPV_UNDEFINED || !n_without_ptx)
        return ct_fail(ct_jit_result(status), "the PTX was not accepted: %s", ptx2spv_status_string(status));
    return ct_fail(CUDA_ERROR_NO_BINARY_FOR_GPU,
                   "%u inputs of the link have machine code for NVIDIA's GPUs and no PTX, and a symbol is undefined; rebuild them with "
                   "PTX: nvcc -rdc=true -gencode arch=compute_75,code=compute_75",
                   n_without_ptx);
}

static CUresult parse(struct ct_code *code, const struct ct_image *image, struct ct_jit *jit)
{
    const struct ptx2spv_options options = ct_jit_compiler_options(jit);
    struct ct_float_environment before;
    struct ptx2spv_linker *linker;
    enum ptx2spv_status status = ptx2spv_linker_create(&linker);
    unsigned address_bits;

    ct_float_environment_enter(&before); /* the compiler parses decimal numbers */
    if (status == PTX2SPV_OK) {
        status = link_texts(linker, image, &options, &code->ptx);
        ptx2spv_linker_destroy(linker);
    }
    ct_float_environment_restore(&before);
    if (status != PTX2SPV_OK)
        return ct_code_link_failure(status, image->n_without_ptx);
    code->hash = hash_texts(image);
    ptx2spv_module_versions(code->ptx, &code->isa, &code->sm, &address_bits);
    if (address_bits != 64)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "PTX with %u-bit addresses is not supported", address_bits);
    for (unsigned i = 0; i < image->count; i++)
        ct_ptx_dir_keep(image->texts[i].text, image->texts[i].length);
    return CUDA_SUCCESS;
}

static void report(const struct ct_code *code, struct ct_jit *jit)
{
    if (jit->verbose)
        ct_jit_inform(jit, "PTX %u.%u for sm_%u: %u kernels, %u variables; kernels are compiled when they are first used", code->isa / 10,
                      code->isa % 10, code->sm, ptx2spv_module_kernel_count(code->ptx), ptx2spv_module_variable_count(code->ptx));
}

/* Either limit may be 0, none. */
static unsigned lower_limit(unsigned a, unsigned b)
{
    return a && b ? (a < b ? a : b) : a + b;
}

static CUresult make(const struct ct_image *image, struct ct_jit *jit, struct ct_code **out)
{
    struct ct_code *code;
    CUresult r;

    code = calloc(1, sizeof *code);
    if (!code)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for code");
    ct_object_init(&code->object, CT_OBJECT_NONE, free_code);
    ct_managed_variables_init(&code->managed);
    code->max_registers = lower_limit(image->max_registers, jit->max_registers);
    r = parse(code, image, jit);
    if (r == CUDA_SUCCESS) {
        report(code, jit);
        *out = code;
    } else {
        ct_object_release(&code->object);
    }
    return r;
}

CUresult ct_code_create(const void *image, size_t size, struct ct_jit *jit, struct ct_code **out)
{
    struct ct_image found;
    CUresult r = ct_image_read(image, size, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = make(&found, jit, out);
    ct_image_finish(&found);
    return r;
}

CUresult ct_code_managed(struct ct_code *code, struct ct_device *device, uint64_t *out_address)
{
    *out_address = 0;
    if (ptx2spv_module_managed_image(code->ptx)->size_bytes == 0)
        return CUDA_SUCCESS;
    return ct_managed_variables_place(&code->managed, code->ptx, device, out_address);
}

CUresult ct_code_managed_variable(struct ct_code *code, struct ct_device *device, const char *name, uint64_t *out_address,
                                  uint64_t *out_size)
{
    for (unsigned i = 0; i < ptx2spv_module_variable_count(code->ptx); i++) {
        const struct ptx2spv_variable *variable = ptx2spv_module_variable(code->ptx, i);
        CUresult r;

        if (!variable->managed || variable->external || strcmp(variable->name, name))
            continue;
        r = ct_code_managed(code, device, out_address);
        *out_address += variable->offset;
        *out_size = variable->size;
        return r;
    }
    return ct_fail(CUDA_ERROR_NOT_FOUND, "the library has no managed variable \"%s\"", name);
}
