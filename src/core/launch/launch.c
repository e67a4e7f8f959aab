/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel launches: checks (in the native driver's order where it is known), parameters, and recording. */
#include "launch.h"

#include "core/array/array_mirrors.h"
#include "core/array/array_refresh.h"
#include "core/base/config.h"
#include "core/device/device.h"
#include "core/base/float_environment.h"
#include "core/check/check.h"
#include "core/check/sites.h"
#include "core/code/heap.h"
#include "core/library/library.h"
#include "core/base/log.h"
#include "core/memory/memory.h"
#include "core/code/print.h"
#include "core/backing/address_space.h"
#include "core/backing/memory_backing.h"
#include "core/code/occupancy.h"
#include "core/stream/stream_record.h"
#include "core/stream/stream_ring.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "launch"
#define CT_PARAMS_ALIGN 16
#define MOST_COOPERATIVE_BLOCKS 0x7fffffffu
#define MOST_RECORDED_BLOCKS (UINT64_C(1) << 20)

static uint32_t required_block(const struct ct_function *function, int dimension)
{
    uint32_t required = function->decl->req_ntid[dimension];

    return required ? required : 1;
}

/* A kernel that specifies its block size may be launched without one: CUDA C++ kernels with __block_size__ as kernel<<<grid>>>, which the
 * runtime passes as a block of 1 x 1 x 1 (Programming Guide, Thread Block Clusters). NVIDIA's driver 580 accepts that, and no other
 * block. */
static struct ct_launch_shape complete_shape(const struct ct_function *function, const struct ct_launch_shape *shape)
{
    struct ct_launch_shape complete = *shape;

    if (!function->decl->req_ntid[0] || shape->block[0] != 1 || shape->block[1] != 1 || shape->block[2] != 1)
        return complete;
    for (int i = 0; i < 3; i++)
        complete.block[i] = required_block(function, i);
    return complete;
}

static CUresult check_shape(const struct ct_function *function, const struct ct_launch_shape *shape)
{
    const struct ct_device *device = function->module->context->device;
    uint64_t threads = (uint64_t)shape->block[0] * shape->block[1];
    unsigned limit = ct_function_block_limit(function);

    for (int i = 0; i < 3; i++) {
        if (shape->grid[i] == 0 || shape->grid[i] > (unsigned)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i))
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s: a grid of %u x %u x %u blocks", function->decl->name, shape->grid[0],
                           shape->grid[1], shape->grid[2]);
        if (shape->block[i] == 0 || shape->block[i] > (unsigned)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i))
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s: a block of %u x %u x %u threads", function->decl->name, shape->block[0],
                           shape->block[1], shape->block[2]);
    }
    threads *= shape->block[2]; /* each is within its own limit: no overflow */
    if (threads > limit)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s: a block of %llu threads; at most %u", function->decl->name,
                       (unsigned long long)threads, limit);
    for (int i = 0; i < 3; i++)
        if (function->decl->req_ntid[0] && shape->block[i] != required_block(function, i))
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s requires a block of other dimensions (.reqntid)", function->decl->name);
    return CUDA_SUCCESS;
}

CUresult ct_launch_check_shape(const struct ct_function *function, const struct ct_launch_shape *shape)
{
    const struct ct_launch_shape complete = complete_shape(function, shape);

    return check_shape(function, &complete);
}

/* Against CUDA's limits. What the device itself has is irrelevant: ct_launch_needs_slots. */
static CUresult check_shared(const struct ct_function *function, unsigned dynamic_bytes)
{
    unsigned limit = ct_function_dynamic_shared_limit(function);
    unsigned base = ct_function_shared_base(function);
    unsigned total = ct_function_shared_limit(function);

    if (dynamic_bytes > limit)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s: %u bytes of dynamic shared memory; at most %u", function->decl->name,
                       dynamic_bytes, limit);
    if ((uint64_t)base + dynamic_bytes > total)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s: %u and %u bytes of shared memory; at most %u", function->decl->name, base,
                       dynamic_bytes, total);
    return CUDA_SUCCESS;
}

/* Parses the list `extra`: alternating keys and values, terminated by CU_LAUNCH_PARAM_END. */
static CUresult read_extra(void **extra, const void **out_bytes, size_t *out_size)
{
    const void *bytes = NULL;
    const size_t *size = NULL;

    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            bytes = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[1];
        else
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "unknown key %p in the extra list of a launch", *extra);
    }
    if (!bytes || !size)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the extra list of a launch lacks the buffer or its size");
    *out_bytes = bytes;
    *out_size = *size;
    return CUDA_SUCCESS;
}

static CUresult pack_extra(const struct ct_function *function, void **extra, unsigned char *out)
{
    const uint32_t needed = function->decl->param_bytes;
    const void *bytes;
    size_t size;
    CUresult r = read_extra(extra, &bytes, &size);

    if (r != CUDA_SUCCESS)
        return r;
    /* The buffer may include the padding at the end of a struct of all parameters. */
    if (size > ((size_t)needed + CT_PARAMS_ALIGN - 1) / CT_PARAMS_ALIGN * CT_PARAMS_ALIGN)
        return ct_fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "kernel %s has %u bytes of parameters, the buffer %zu", function->decl->name,
                       needed, size);
    if (size < needed)
        ct_log(CT_LOG_DEBUG, "kernel %s has %u bytes of parameters, the buffer %zu: the rest is 0", function->decl->name, needed, size);
    memset(out, 0, needed);
    memcpy(out, bytes, size < needed ? size : needed);
    return CUDA_SUCCESS;
}

static CUresult pack_params(const struct ct_function *function, void **params, unsigned char *out)
{
    const struct ptx2spv_kernel_decl *decl = function->decl;

    memset(out, 0, decl->param_bytes); /* the padding between parameters is defined too */
    for (unsigned i = 0; i < decl->n_params; i++) {
        if (!params[i])
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s: parameter %u is a null pointer", decl->name, i);
        memcpy(out + decl->params[i].offset, params[i], decl->params[i].size);
    }
    return CUDA_SUCCESS;
}

CUresult ct_launch_pack_params(const struct ct_function *function, void **params, void **extra, unsigned char *out)
{
    if (params && extra)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s: parameters are passed both as a list and as a buffer", function->decl->name);
    if (extra)
        return pack_extra(function, extra, out);
    if (params)
        return pack_params(function, params, out);
    if (function->decl->n_params)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s has %u parameters, but none were passed", function->decl->name,
                       function->decl->n_params);
    return CUDA_SUCCESS;
}

/* Between begin and end: writes a checked kernel's block (struct ptx2spv_check) to the ring, and its address to `params`. params_or_null: where those will
 * be in memory, which the kernel may then read. */
static CUresult place_check(struct ct_stream *stream, const struct ct_launch_code *code, const struct ct_ring_piece *params_or_null,
                            unsigned char *params)
{
    const struct ptx2spv_check_range in_memory = {
        .start = params_or_null ? params_or_null->address : 0,
        .bytes = code->info->param_bytes | PTX2SPV_CHECK_READ_ONLY,
    };
    struct ct_check_block block;
    struct ct_ring_piece piece;
    CUresult r;

    ct_check_note_launch(code->function);
    if (!code->info->check_param_offset)
        return CUDA_SUCCESS;
    r = ct_check_block_init(&block, code->function, params, &in_memory, params_or_null != NULL);
    if (r != CUDA_SUCCESS)
        return r;
    r = ct_stream_ring_take(stream->ring, ct_check_block_bytes(&block), CT_PARAMS_ALIGN, &piece);
    if (r == CUDA_SUCCESS)
        ct_check_block_write(&block, piece.host, piece.address, params);
    ct_check_block_finish(&block);
    return r;
}

/* Records on a stream between begin and end. `params` are packed, info->param_bytes of them; they are copied. */
static CUresult record(struct ct_stream *stream, const struct ct_launch_code *code, const struct ct_launch_shape *shape,
                       unsigned char *params, const char *name)
{
    struct ct_context *context = stream->context;
    struct ct_launch launch = ct_launch_of(code, shape);
    struct ct_ring_piece piece;
    CUresult r;

    ct_launch_place_number(context, code->info, params);
    if (code->info->shared_in_memory) {
        r = ct_launch_place_slots(stream, code, shape, params, &launch.slice_blocks);
        if (r != CUDA_SUCCESS)
            return r;
    }
    launch.params = params;
    launch.fault = context->fault->memory->address;
    if (code->info->params_in_buffer) {
        r = ct_stream_ring_take(stream->ring, code->info->param_bytes, CT_PARAMS_ALIGN, &piece);
        if (r != CUDA_SUCCESS)
            return r;
        launch.params_address = piece.address;
    }
    r = place_check(stream, code, code->info->params_in_buffer ? &piece : NULL, params);
    if (r != CUDA_SUCCESS)
        return r;
    if (code->info->params_in_buffer)
        memcpy(piece.host, params, code->info->param_bytes);
    ct_running_begin(&stream->running, name);
    return ct_running_end(&stream->running, ct_stream_record_launch_locked(stream, &launch));
}

/* ---- creation of commands ---- */

/* Whether its blocks may wait for each other. */
static bool waits_for_blocks(const struct ct_launch_shape *shape)
{
    return shape->cooperative || ct_launch_has_clusters(shape);
}

/* Called before the stream is locked, since the driver may compile for a minute. The dispatches of a cooperative launch are made by the
 * stream's worker, which holds no lock when they are compiled. */
static CUresult prepare_variant(struct ct_launch_command *command)
{
    const struct ct_backend *backend = command->function->module->context->backend;
    const struct ct_launch_code code = {.image = command->runs->image};
    const struct ct_launch launch = ct_launch_of(&code, &command->shape);

    return backend->kernels->prepare && !waits_for_blocks(&command->shape) ? backend->kernels->prepare(&launch, &command->variant)
                                                                           : CUDA_SUCCESS;
}

static unsigned block_threads_of(const struct ct_launch_shape *shape)
{
    return shape->block[0] * shape->block[1] * shape->block[2];
}

/* CUDA requires that all blocks of a cooperative launch be resident at once (CUDA C++ Programming Guide, "Grid Synchronization"). Here they
 * need not be, since waiting blocks end (cooperative.c), so the only limit is the counter of cooperative_groups' grid barrier. */
static CUresult check_room(const struct ct_function *function, const struct ct_launch_shape *shape)
{
    const struct ct_device *device = function->module->context->device;
    uint64_t room = MOST_COOPERATIVE_BLOCKS;
    uint64_t blocks = (uint64_t)shape->grid[0] * shape->grid[1]; /* below 2^47, and z below 2^16 */

    if (ct_config()->strict)
        room = (uint64_t)ct_occupancy_blocks(function, block_threads_of(shape), shape->dynamic_shared_bytes) *
               (unsigned)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    if (blocks * shape->grid[2] > room)
        return ct_fail(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "kernel %s: %u x %u x %u blocks in a cooperative launch; at most %llu",
                       function->decl->name, shape->grid[0], shape->grid[1], shape->grid[2], (unsigned long long)room);
    return CUDA_SUCCESS;
}

/* Where a block's local memory is on the stack of one thread, more than the stack has would end the process. */
static CUresult check_local(const struct ct_function *function, const struct ct_launch_shape *shape)
{
    const uint64_t limit = function->module->context->device->info.block_local_bytes;
    const uint64_t bytes = (uint64_t)function->info.local_bytes * block_threads_of(shape);

    if (limit && bytes > limit)
        return ct_fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "kernel %s: a block has %llu bytes of local memory; at most %llu",
                       function->decl->name, (unsigned long long)bytes, (unsigned long long)limit);
    return CUDA_SUCCESS;
}

static bool needs_any_grid(const struct ct_function *function, const struct ct_launch_shape *shape)
{
    return (function->info.whole_warps && block_threads_of(shape) % 32) ||
           (function->info.limits_grid && (uint64_t)shape->grid[0] * shape->block[0] > PTX2SPV_GRID_LIMIT) ||
           (function->info.limits_objects && ct_address_has_large_objects());
}

/* .blocksareclusters: the grid becomes one of blocks. */
static CUresult count_blocks(const struct ct_function *function, struct ct_launch_shape *shape)
{
    const struct ct_device *device = function->module->context->device;

    for (int i = 0; i < 3; i++)
        if (__builtin_mul_overflow(shape->grid[i], shape->cluster[i], &shape->grid[i]) ||
            shape->grid[i] > (unsigned)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i))
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s: too many clusters", function->decl->name);
    return CUDA_SUCCESS;
}

/* Replaces the size of the clusters by what the launch gets. */
static CUresult check_cluster(const struct ct_function *function, struct ct_launch_shape *shape)
{
    CUresult r = ct_launch_check_cluster(function, shape->cluster, shape->cluster);

    if (r == CUDA_SUCCESS && function->decl->blocks_are_clusters)
        return count_blocks(function, shape);
    for (int i = 0; i < 3 && r == CUDA_SUCCESS; i++)
        if (shape->grid[i] % shape->cluster[i])
            r = ct_fail(CUDA_ERROR_INVALID_CLUSTER_SIZE, "kernel %s: clusters of %u x %u x %u blocks do not divide a grid of %u x %u x %u",
                        function->decl->name, shape->cluster[0], shape->cluster[1], shape->cluster[2], shape->grid[0], shape->grid[1],
                        shape->grid[2]);
    return r;
}

/* Does all checks that do not depend on the parameters. *out: the function to run. */
static CUresult prepare(struct ct_function *function, struct ct_launch_shape *shape, struct ct_function **out)
{
    CUresult r;

    *out = function;
    if ((r = check_shape(function, shape)) != CUDA_SUCCESS || (r = check_cluster(function, shape)) != CUDA_SUCCESS ||
        (r = ct_function_compile(function)) != CUDA_SUCCESS || (r = check_shared(function, shape->dynamic_shared_bytes)) != CUDA_SUCCESS)
        return r;
    if (shape->cooperative && (r = check_room(function, shape)) != CUDA_SUCCESS)
        return r;
    if (ct_launch_has_clusters(shape))
        r = ct_function_clustered(function, out);
    else if (shape->cooperative)
        r = ct_function_cooperative(function, out);
    if (r != CUDA_SUCCESS)
        return r;
    if (needs_any_grid(*out, shape) && (r = ct_function_any_grid(*out, out)) != CUDA_SUCCESS)
        return r;
    if ((*out)->info.stack_bytes && (r = ct_function_deeper(*out, ct_context_stack_bytes(function->module->context), out)) != CUDA_SUCCESS)
        return r;
    if ((r = check_local(*out, shape)) != CUDA_SUCCESS)
        return r;
    return ct_launch_needs_slots(*out, shape) ? ct_function_in_memory(*out, out) : CUDA_SUCCESS;
}

CUresult ct_launch_check(struct ct_function *function, const struct ct_launch_shape *shape)
{
    struct ct_launch_shape complete = complete_shape(function, shape);
    struct ct_float_environment before;
    struct ct_function *runs;
    CUresult r;

    ct_float_environment_enter(&before);
    r = prepare(function, &complete, &runs);
    ct_float_environment_restore(&before);
    return r;
}

CUresult ct_launch_compile(struct ct_function *function, const struct ct_launch_shape *shape)
{
    struct ct_launch_command command = {.function = function, .shape = complete_shape(function, shape)};
    struct ct_float_environment before;
    CUresult r;

    ct_float_environment_enter(&before);
    r = prepare(function, &command.shape, &command.runs);
    if (r == CUDA_SUCCESS)
        r = prepare_variant(&command);
    ct_float_environment_restore(&before);
    ct_launch_command_finish(&command);
    return r;
}

static CUresult take_params(struct ct_launch_command *command, void **params, void **extra, unsigned char *room)
{
    const struct ct_function *function = command->function;
    const uint32_t needed = command->runs->info.param_bytes; /* at least those of the declaration */

    command->owns_params = needed > CT_LAUNCH_ROOM_BYTES;
    command->params = command->owns_params ? malloc(needed) : room;
    if (!command->params)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%u bytes of parameters", needed);
    return ct_launch_pack_params(function, params, extra, command->params);
}

CUresult ct_launch_command_init(struct ct_launch_command *command, struct ct_function *function, const struct ct_launch_shape *shape,
                                void **params, void **extra, unsigned char room[CT_LAUNCH_ROOM_BYTES])
{
    struct ct_float_environment before;
    CUresult r;

    *command = (struct ct_launch_command){.function = function, .shape = complete_shape(function, shape)};
    ct_float_environment_enter(&before); /* a driver may compile now, or start threads */
    r = prepare(function, &command->shape, &command->runs);
    if (r == CUDA_SUCCESS)
        r = take_params(command, params, extra, room);
    if (r == CUDA_SUCCESS)
        r = prepare_variant(command);
    if (r == CUDA_SUCCESS)
        r = ct_module_update_references(function->module);
    ct_float_environment_restore(&before);
    if (r != CUDA_SUCCESS)
        ct_launch_command_finish(command);
    return r;
}

void ct_launch_command_finish(struct ct_launch_command *command)
{
    if (command->variant)
        command->function->module->context->backend->kernels->variant_release(command->variant);
    if (command->owns_params)
        free(command->params);
}

/* ---- execution ---- */

static struct ct_launch_code code_of(const struct ct_launch_command *command)
{
    return (struct ct_launch_code){
        .image = command->runs->image,
        .info = &command->runs->info,
        .variables = {command->function->module->image_address}, /* the CUDA address: kernels may store pointers into it */
        .variant = command->variant,
        .function = command->runs,
    };
}

static CUresult record_command(struct ct_stream *stream, const struct ct_launch_command *command)
{
    const struct ct_module *module = command->function->module;
    const char *name = command->function->decl->name;
    const struct ct_launch_code code = code_of(command);
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (!atomic_load(&module->loaded)) /* with the stream locked: see module.c */
        r = ct_fail(CUDA_ERROR_INVALID_HANDLE, "kernel %s: its module has been unloaded", name);
    else if (waits_for_blocks(&command->shape))
        r = ct_launch_record_cooperative(stream, &code, &command->shape, command->params, command->function->decl);
    else
        r = record(stream, &code, &command->shape, command->params, name);
    ct_stream_end(stream);
    return r;
}

static bool needs_mirrors(const struct ct_launch_command *command)
{
    const struct ct_module *module = command->function->module;

    return module->has_textures && ct_array_mirrors_exist(module->context);
}

static CUresult record_with_mirrors(struct ct_stream *stream, const struct ct_launch_command *command)
{
    CUresult r = ct_array_refresh_begin(stream), r_end;

    if (r != CUDA_SUCCESS)
        return r;
    r = record_command(stream, command);
    r_end = ct_array_refresh_end(stream);
    return r == CUDA_SUCCESS ? r_end : r;
}

CUresult ct_launch_execute(struct ct_stream *stream, const struct ct_launch_command *command)
{
    const struct ct_function *function = command->function;
    struct ct_float_environment before;
    CUresult r;

    if (stream->context != function->module->context)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "kernel %s and the stream belong to different contexts", function->decl->name);
    if (function->module->prints) {
        ct_print_flush(stream->context); /* as CUDA does at the beginning of a launch */
        ct_print_note_launch(stream->context);
    }
    if (command->runs->info.check_param_offset)
        ct_check_flush(
            stream->context); /* reports what earlier launches found, so that this launch's first fault at a site is described, too */
    if (function->module->allocates)
        ct_heap_note_launch(stream->context);
    ct_float_environment_enter(&before); /* as in ct_launch_command_init */
    r = needs_mirrors(command) ? record_with_mirrors(stream, command) : record_command(stream, command);
    ct_float_environment_restore(&before);
    return r;
}

/* ---- recordings ---- */

/* Larger grids are split into several submissions. */
static bool fits_into_a_recording(const struct ct_launch_shape *shape)
{
    return (uint64_t)shape->grid[0] * shape->grid[1] <= MOST_RECORDED_BLOCKS / shape->grid[2];
}

bool ct_launch_is_recordable(const struct ct_launch_command *command, const struct ct_context *context)
{
    /* the parameters of a recording stay the same, but each launch has a number of its own, and, if it is checked, ranges */
    return command->function->module->context == context && command->variant && !command->runs->info.number_param_offset &&
           !command->runs->info.check_param_offset && fits_into_a_recording(&command->shape) && !needs_mirrors(command);
}

CUresult ct_launch_record(struct ct_recording *recording, const struct ct_launch_command *command,
                          const struct ptx2spv_slots *slots_or_null)
{
    const struct ct_module *module = command->function->module;
    const struct ct_launch_code code = code_of(command);
    struct ct_launch launch = ct_launch_of(&code, &command->shape);

    if (slots_or_null) {
        memcpy(command->params + code.info->slots_param_offset, slots_or_null, sizeof *slots_or_null);
        launch.slice_blocks = slots_or_null->mask + 1;
    }
    launch.params = command->params;
    launch.fault = module->context->fault->memory->address;
    return module->context->backend->recordings->launch(recording, &launch);
}

/* ---- failures ---- */

const char *ct_launch_kernel_name(CUfunction handle, struct ct_object **out_object)
{
    if ((*out_object = ct_object_find_or_null(CT_OBJECT_FUNCTION, handle)) != NULL)
        return ((struct ct_function *)*out_object)->decl->name;
    if ((*out_object = ct_object_find_or_null(CT_OBJECT_KERNEL, handle)) != NULL)
        return ((struct ct_kernel *)*out_object)->decl->name;
    return "(no kernel)";
}

/* FNV-1a, seeded with the kernel and the error. */
static uint64_t hash_failure(CUfunction handle, CUresult r, const char *reason)
{
    uint64_t hash = (0xcbf29ce484222325 ^ (uint64_t)(uintptr_t)handle) * 0x100000001b3 ^ (uint64_t)r;

    for (; *reason; reason++)
        hash = (hash ^ (unsigned char)*reason) * 0x100000001b3;
    return hash;
}

CUresult ct_launch_log_failure(CUfunction handle, CUresult r)
{
    static _Atomic uint64_t last_logged; /* so that a loop logs the failure once; relaxed: it orders nothing */
    const char *name, *reason = ct_log_last_failure();
    struct ct_object *object;
    uint64_t hash;

    if (r == CUDA_SUCCESS)
        return r;
    hash = hash_failure(handle, r, reason);
    if (atomic_exchange_explicit(&last_logged, hash, memory_order_relaxed) == hash)
        return r;
    name = ct_launch_kernel_name(handle, &object);
    if (*reason)
        ct_log(CT_LOG_WARN, "kernel %s is not launched: %s", name, reason);
    else
        ct_log(CT_LOG_WARN, "kernel %s is not launched: error %d", name, (int)r);
    ct_object_release(object);
    return r;
}
