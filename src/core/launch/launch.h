/* SPDX-License-Identifier: Apache-2.0 */
/* Launching kernels. */
#ifndef CT_CORE_LAUNCH_H
#define CT_CORE_LAUNCH_H
/* Parts: cooperative.c, launch_attributes.c, launch_slots.c. */

#include "core/code/function.h"
#include "core/stream/event.h"

#include <string.h>

/* As cuLaunchKernel takes it: dimensions in blocks and threads, shared memory in bytes. */
struct ct_launch_shape {
    unsigned grid[3], block[3];
    unsigned dynamic_shared_bytes;
    bool cooperative;    /* blocks may wait for each other */
    unsigned cluster[3]; /* dimensions of clusters in blocks; 0: as the kernel specifies, or one block */
};
/* Whether clusters have several blocks. For shapes of launches that have been checked. */
static inline bool ct_launch_has_clusters(const struct ct_launch_shape *shape)
{
    return shape->cluster[0] > 1 || shape->cluster[1] > 1 || shape->cluster[2] > 1;
}
static inline uint64_t ct_launch_blocks(const struct ct_launch_shape *shape)
{
    return (uint64_t)shape->grid[0] * shape->grid[1] * shape->grid[2];
}

/* The checks of a launch that need no compiled kernel. INVALID_VALUE. */
CUresult ct_launch_check_shape(const struct ct_function *function, const struct ct_launch_shape *shape);
/* Does all checks of a launch that do not depend on the parameters, for which the kernel is compiled. */
CUresult ct_launch_check(struct ct_function *function, const struct ct_launch_shape *shape);
/* Compiles the kernel, and what the driver compiles for the shape, without a launch. Errors of ct_launch_check and the backend's. */
CUresult ct_launch_compile(struct ct_function *function, const struct ct_launch_shape *shape);
/* Packs the parameters of a launch into `out`, decl->param_bytes of them. INVALID_VALUE; LAUNCH_OUT_OF_RESOURCES: the buffer is too large. */
CUresult ct_launch_pack_params(const struct ct_function *function, void **params, void **extra, unsigned char *out);

/* A launch with its arguments validated, its parameters packed and its kernel compiled. */
struct ct_launch_command {
    struct ct_function *function; /* borrowed: the caller retains it until the command is finished */
    struct ct_function *runs;     /* `function`, or the same kernel in the form that the launch needs, borrowed from it */
    struct ct_launch_shape shape;
    struct ct_kernel_variant *variant; /* compiled for the shape, or NULL; a reference */
    unsigned char *params;             /* packed */
    bool owns_params;
};
#define CT_LAUNCH_ROOM_BYTES 1024 /* most kernels have a few pointers and numbers */

/* May take long: call it with no lock held. Parameters are passed as a pointer to each (params) or as one buffer (extra), not both.
 * INVALID_VALUE: dimensions, shared memory or parameters against the limits of device and kernel; what ct_function_compile gives;
 * LAUNCH_OUT_OF_RESOURCES; COOPERATIVE_LAUNCH_TOO_LARGE: see check_room in launch.c. Finish the command only on success. `room` must outlive the command, which stores its parameters there if they fit. */
CUresult ct_launch_command_init(struct ct_launch_command *command, struct ct_function *function, const struct ct_launch_shape *shape,
                                void **params, void **extra, unsigned char room[CT_LAUNCH_ROOM_BYTES]);
void ct_launch_command_finish(struct ct_launch_command *command);
/* Records it; does not wait for the kernel. INVALID_HANDLE: function and stream belong to different contexts, or the module is unloaded. */
CUresult ct_launch_execute(struct ct_stream *stream, const struct ct_launch_command *command);

/* Whether ct_launch_record can record the launch for replays in streams of the context. */
bool ct_launch_is_recordable(const struct ct_launch_command *command, const struct ct_context *context);
/* slots_or_null: those of a kernel with info.shared_in_memory. */
CUresult ct_launch_record(struct ct_recording *recording, const struct ct_launch_command *command,
                          const struct ptx2spv_slots *slots_or_null);

/* Returns r. Unless r is success it logs a warning that the kernel was not launched, and the reason: programs that ignore errors would use
 * its results or timings as if it had run. For the entry points; the reason is the last ct_fail message since ct_log_forget_failure. */
CUresult ct_launch_log_failure(CUfunction function, CUresult r);
/* The name of a function or a library's kernel, valid until the caller releases *out_object, which may be NULL; a placeholder if it is neither. */
const char *ct_launch_kernel_name(CUfunction handle, struct ct_object **out_object);
/* launch_attributes.c. INVALID_VALUE: no such attribute, not for launches, or a timed event; INVALID_HANDLE: no such event; NOT_SUPPORTED:
 * one that would change the behaviour of the launch. */
CUresult ct_launch_check_attributes(const CUlaunchAttribute *attributes, unsigned count);
bool ct_launch_attributes_cooperate(const CUlaunchAttribute *attributes, unsigned count);
/* The dimensions of clusters; zeros if no attribute specifies them. */
void ct_launch_attributes_cluster(const CUlaunchAttribute *attributes, unsigned count, unsigned out[3]);
/* Whether clusters of these dimensions (zeros: not given) are possible for the function: *out has what a launch gets. INVALID_CLUSTER_SIZE. */
CUresult ct_launch_check_cluster(const struct ct_function *function, const unsigned given[3], unsigned out[3]);
/* The event that is to be recorded after the launch according to the attribute, or NULL; the caller releases it. INVALID_HANDLE. */
CUresult ct_launch_attribute_event(const CUlaunchAttribute *attribute, struct ct_event **out_or_null);

/* A compiled kernel in the form that queues accept. */
struct ct_launch_code {
    struct ct_kernel_image *image;
    const struct ptx2spv_kernel_info *info;
    ct_devaddr variables;              /* of its module; 0 none */
    struct ct_kernel_variant *variant; /* compiled for the launch's shape, or NULL */
    struct ct_function *function;      /* whose kernel it is */
};
/* A launch without its parameters and the address of the fault word. */
static inline struct ct_launch ct_launch_of(const struct ct_launch_code *code, const struct ct_launch_shape *shape)
{
    return (struct ct_launch){
        .kernel = code->image,
        .variant = code->variant,
        .image = code->variables,
        .grid = {shape->grid[0], shape->grid[1], shape->grid[2]},
        .block = {shape->block[0], shape->block[1], shape->block[2]},
        .dynamic_shared_bytes = shape->dynamic_shared_bytes,
    };
}

/* launch_slots.c. Whether the launch needs more shared memory than the device has, so that the kernel must run in
 * the form of ct_function_in_memory. The function is compiled. */
bool ct_launch_needs_slots(const struct ct_function *function, const struct ct_launch_shape *shape);
/* The number and size of the slots for a launch, without their address. */
struct ptx2spv_slots ct_launch_plan_slots(const struct ct_context *context, const struct ptx2spv_kernel_info *info,
                                          const struct ct_launch_shape *shape);
static inline uint64_t ct_launch_slots_bytes(const struct ptx2spv_slots *slots)
{
    return ((uint64_t)slots->mask + 1) * slots->stride_bytes;
}

/* Between begin and end: takes the stream's memory for slots, fewer if there is too little memory, and stores them in the packed parameters.
 * *out_slice_blocks: as in struct ct_launch. OUT_OF_MEMORY. */
CUresult ct_launch_place_slots(struct ct_stream *stream, const struct ct_launch_code *code, const struct ct_launch_shape *shape,
                               unsigned char *params, uint32_t *out_slice_blocks);

/* Stores the number of this launch, which is %gridid, in the packed parameters of a kernel that reads it. */
static inline void ct_launch_place_number(struct ct_context *context, const struct ptx2spv_kernel_info *info, unsigned char *params)
{
    const uint64_t number = atomic_fetch_add_explicit(&context->launches, 1, memory_order_relaxed) + 1; /* relaxed: it orders nothing */

    if (info->number_param_offset)
        memcpy(params + info->number_param_offset, &number, sizeof number);
}

/* cooperative.c: a cooperative launch, between begin and end, of a kernel from ct_function_cooperative that outlives the stream's
 * work. `params`: those of the declaration, without the additional parameter. OUT_OF_MEMORY. */
CUresult ct_launch_record_cooperative(struct ct_stream *stream, const struct ct_launch_code *code, const struct ct_launch_shape *shape,
                                      const void *params, const struct ptx2spv_kernel_decl *decl);

#endif
