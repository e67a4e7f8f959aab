/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Module Management, the linker. INVALID_HANDLE: the handle is not that of a link state, or the link state was destroyed;
 * INVALID_VALUE: a null pointer. */
#include "entry_points.h"

#include "core/device/context.h"
#include "core/code/image.h"
#include "core/code/link_state.h"
#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "link"

/* JIT options as the API receives them. */
struct options {
    unsigned count;
    CUjit_option *options;
    void **values;
};

static CUresult create(struct options options, CUlinkState *out)
{
    struct ct_context *context;
    struct ct_jit jit;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_release(context);
    if (!out)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "stateOut is NULL");
    r = ct_jit_init(&jit, options.count, options.options, options.values);
    return r == CUDA_SUCCESS ? ct_link_state_create(&jit, out) : r;
}

/* cuLinkCreate_v2. The log buffers, and optionValues if sizes or times are to be written there, are used until cuLinkDestroy.
 * INVALID_CONTEXT: no context is current; NOT_SUPPORTED: an unsupported option; OUT_OF_MEMORY. */
CUresult CUDAAPI cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
    return create((struct options){numOptions, options, optionValues}, stateOut);
}

/* cuLinkCreate. The same: on 64-bit hosts the two versions do not differ. */
CUresult CUDAAPI cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
    return create((struct options){numOptions, options, optionValues}, stateOut);
}

/* Options of one input are hints for the compiler; options of logs and targets apply to the whole link. */
static CUresult check_options(struct options options)
{
    static const CUjit_option of_the_whole[] = {
        CU_JIT_WALL_TIME,
        CU_JIT_INFO_LOG_BUFFER,
        CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        CU_JIT_ERROR_LOG_BUFFER,
        CU_JIT_TARGET_FROM_CUCONTEXT,
        CU_JIT_TARGET,
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    };
    struct ct_jit jit;
    CUresult r = ct_jit_init(&jit, options.count, options.options, options.values);

    for (unsigned i = 0; r == CUDA_SUCCESS && i < options.count; i++)
        for (size_t k = 0; k < sizeof of_the_whole / sizeof *of_the_whole; k++)
            if (options.options[i] == of_the_whole[k])
                r = ct_fail(CUDA_ERROR_INVALID_VALUE, "JIT option %d is valid in cuLinkCreate only", (int)options.options[i]);
    return r;
}

static CUresult add_data(CUlinkState handle, const struct ct_link_input *input, struct options options)
{
    struct ct_link_state *state;
    CUresult r = ct_link_state_enter(handle, &state);

    if (r != CUDA_SUCCESS)
        return r;
    if (!input->bytes || !input->size)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "no data");
    else
        r = check_options(options);
    if (r == CUDA_SUCCESS)
        r = ct_link_state_add(state, input);
    ct_link_state_leave(state);
    return r;
}

/* cuLinkAddData_v2. Adds `size` bytes, which are not needed afterwards, of the kind `type`: PTX text; a fat binary, a host object file,
 * or the image of another link; an archive of object files, whose members are linked only if they define a symbol that is missing.
 * INVALID_VALUE: an unknown type, or an option of the whole link; INVALID_PTX, UNSUPPORTED_PTX_VERSION; INVALID_SOURCE: a name is
 * defined twice; INVALID_IMAGE: the data is damaged, or of another kind; NO_BINARY_FOR_GPU: machine code; NOT_SUPPORTED:
 * CU_JIT_INPUT_NVVM; OUT_OF_MEMORY. */
CUresult CUDAAPI cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                                  unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    const struct ct_link_input input = {type, data, size, name};

    return add_data(state, &input, (struct options){numOptions, options, optionValues});
}

/* cuLinkAddData. The same. */
CUresult CUDAAPI cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name, unsigned int numOptions,
                               CUjit_option *options, void **optionValues)
{
    const struct ct_link_input input = {type, data, size, name};

    return add_data(state, &input, (struct options){numOptions, options, optionValues});
}

static CUresult add_file(CUlinkState handle, CUjitInputType type, const char *path, struct options options)
{
    struct ct_link_state *state;
    size_t size;
    char *bytes;
    CUresult r = ct_link_state_enter(handle, &state);

    if (r != CUDA_SUCCESS)
        return r;
    ct_link_state_leave(state);
    if (!path)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "path is NULL");
    r = ct_image_read_file(path, &bytes, &size);
    if (r != CUDA_SUCCESS)
        return r;
    r = add_data(handle, &(struct ct_link_input){type, bytes, size, path}, options);
    free(bytes);
    return r;
}

/* cuLinkAddFile_v2. As cuLinkAddData, from a file, whose path is the name. FILE_NOT_FOUND: the file does not exist. */
CUresult CUDAAPI cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions, CUjit_option *options,
                                  void **optionValues)
{
    return add_file(state, type, path, (struct options){numOptions, options, optionValues});
}

/* cuLinkAddFile. The same. */
CUresult CUDAAPI cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions, CUjit_option *options,
                               void **optionValues)
{
    return add_file(state, type, path, (struct options){numOptions, options, optionValues});
}

/* cuLinkComplete. The image, which cuModuleLoadData and cuLibraryLoadData accept, lives until cuLinkDestroy; a copy of its bytes can be
 * loaded at any later time, also from a file. sizeOut may be NULL. INVALID_SOURCE: a symbol is used and not defined (the error log names
 * it); OUT_OF_MEMORY. */
CUresult CUDAAPI cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
    struct ct_link_state *found;
    CUresult r = ct_link_state_enter(state, &found);

    if (r != CUDA_SUCCESS)
        return r;
    if (cubinOut)
        r = ct_link_state_complete(found, cubinOut, sizeOut);
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "cubinOut is NULL");
    ct_link_state_leave(found);
    return r;
}

/* cuLinkDestroy. */
CUresult CUDAAPI cuLinkDestroy(CUlinkState state)
{
    struct ct_link_state *found;
    CUresult r = ct_link_state_enter(state, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_link_state_destroy(found);
    ct_link_state_leave(found);
    return r;
}
