/* SPDX-License-Identifier: Apache-2.0 */
/* The launch calls of CUDA 2. The settings are guarded by the module's lock; a launch uses a copy of them. */
#include "launch_setup.h"

#include "core/base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "launch"
#define CT_SETUP_ALIGN 16 /* a struct of all parameters may be padded to this */

struct ct_launch_setup {
    unsigned block[3]; /* 0: not set yet */
    unsigned shared_bytes;
    unsigned param_size;     /* as set; bytes */
    unsigned param_capacity; /* of `params`, bytes */
    unsigned char params[];
};

/* The setup of a function whose module is locked; NULL if out of memory. */
static struct ct_launch_setup *setup_locked_or_null(struct ct_function *function)
{
    unsigned capacity = (function->decl->param_bytes + CT_SETUP_ALIGN - 1) / CT_SETUP_ALIGN * CT_SETUP_ALIGN;

    assert(ct_mutex_held(&function->module->lock));
    if (!function->setup && (function->setup = calloc(1, sizeof *function->setup + capacity)) != NULL)
        function->setup->param_capacity = capacity;
    return function->setup;
}

static CUresult no_memory(void)
{
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the launch settings of a function");
}

CUresult ct_launch_setup_block(struct ct_function *function, int x, int y, int z)
{
    struct ct_launch_setup *setup;

    if (x < 1 || y < 1 || z < 1 || (uint64_t)x * (uint64_t)y > ct_function_block_limit(function) ||
        (uint64_t)x * (uint64_t)y * (uint64_t)z > ct_function_block_limit(function))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a block of %d x %d x %d threads", x, y, z);
    ct_mutex_lock(&function->module->lock);
    setup = setup_locked_or_null(function);
    if (setup) {
        setup->block[0] = (unsigned)x;
        setup->block[1] = (unsigned)y;
        setup->block[2] = (unsigned)z;
    }
    ct_mutex_unlock(&function->module->lock);
    return setup ? CUDA_SUCCESS : no_memory();
}

CUresult ct_launch_setup_shared(struct ct_function *function, unsigned bytes)
{
    struct ct_launch_setup *setup;

    ct_mutex_lock(&function->module->lock);
    setup = setup_locked_or_null(function);
    if (setup)
        setup->shared_bytes = bytes;
    ct_mutex_unlock(&function->module->lock);
    return setup ? CUDA_SUCCESS : no_memory();
}

CUresult ct_launch_setup_param_size(struct ct_function *function, unsigned bytes)
{
    struct ct_launch_setup *setup;
    bool fits = false;

    ct_mutex_lock(&function->module->lock);
    setup = setup_locked_or_null(function);
    if (setup && (fits = bytes <= setup->param_capacity))
        setup->param_size = bytes;
    ct_mutex_unlock(&function->module->lock);
    if (!setup)
        return no_memory();
    return fits ? CUDA_SUCCESS
                : ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s has %u bytes of parameters, not %u", function->decl->name,
                          function->decl->param_bytes, bytes);
}

CUresult ct_launch_setup_param(struct ct_function *function, int offset, const void *bytes, unsigned size)
{
    struct ct_launch_setup *setup;
    bool fits = false;

    if (!bytes || offset < 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%u bytes of parameters at offset %d from %p", size, offset, bytes);
    ct_mutex_lock(&function->module->lock);
    setup = setup_locked_or_null(function);
    if (setup && (fits = (uint64_t)offset + size <= setup->param_capacity))
        memcpy(setup->params + offset, bytes, size);
    ct_mutex_unlock(&function->module->lock);
    if (!setup)
        return no_memory();
    return fits ? CUDA_SUCCESS
                : ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s has %u bytes of parameters: none at %d to %llu", function->decl->name,
                          function->decl->param_bytes, offset, (unsigned long long)offset + size);
}

CUresult ct_launch_setup_read(struct ct_function *function, struct ct_launch_shape *out, void **out_params, size_t *out_size)
{
    struct ct_launch_setup *setup;
    unsigned char *params = NULL;

    ct_mutex_lock(&function->module->lock);
    setup = setup_locked_or_null(function);
    if (setup && (params = malloc(setup->param_capacity ? setup->param_capacity : 1)) != NULL) {
        memcpy(params, setup->params, setup->param_capacity);
        *out = (struct ct_launch_shape){
            .grid = {1, 1, 1},
            .block = {setup->block[0], setup->block[1], setup->block[2]},
            .dynamic_shared_bytes = setup->shared_bytes,
        };
        *out_size = setup->param_size;
        *out_params = params;
    }
    ct_mutex_unlock(&function->module->lock);
    return params ? CUDA_SUCCESS : no_memory();
}
