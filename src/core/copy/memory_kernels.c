/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread copies or fills a unit of 16, 4 or 1 bytes: the largest that divides all addresses, pitches and lengths. The units of a row are in the x
 * dimension of the grid, rows in y, slices in z. */
#include "memory_kernels.h"

#include "builtin_kernel.h"
#include "copy_pieces.h"

#include <string.h>

#define BLOCK_THREADS 256u
#define HOST_IS_FASTER_BYTES ((uint64_t)64 << 10) /* on CPU devices, where memcpy and memset are several times faster than kernels */
#define MOST_ROWS 65535u                          /* blocks in the y and z dimensions of a grid */

enum { COPY_16, COPY_4, COPY_1, FILL_16, FILL_4, FILL_1, N_KERNELS };
_Static_assert(N_KERNELS <= CT_BUILTIN_KERNELS, "they have room in a table");

/* ---- the kernels ---- */

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry "
/* %n: the unit's number in its row; ends if there is none. Then %at: its offset in bytes, and %y, %z: the row and the slice. */
#define UNIT_OF_THREAD(shift)                                                                                                              \
    ".reg .pred %p;\n.reg .b32 %i<2>, %a<4>;\n.reg .b64 %dst, %src, %n, %at, %end, %y, %z, %pitch;\n"                                      \
    "mov.u32 %i0, %ctaid.x;\nmul.wide.u32 %n, %i0, 256;\nmov.u32 %i1, %tid.x;\ncvt.u64.u32 %at, %i1;\nadd.u64 %n, %n, %at;\n"              \
    "ld.param.u64 %end, [units];\nsetp.ge.u64 %p, %n, %end;\n@%p ret;\nshl.b64 %at, %n, " #shift ";\n"                                     \
    "mov.u32 %i0, %ctaid.y;\ncvt.u64.u32 %y, %i0;\nmov.u32 %i0, %ctaid.z;\ncvt.u64.u32 %z, %i0;\n"
/* Adds the offset of the unit to one end. */
#define MOVE(end)                                                                                                                          \
    "ld.param.u64 %" end ", [" end "];\nld.param.u64 %pitch, [" end "_pitch];\nmad.lo.u64 %" end ", %y, %pitch, %" end ";\n"               \
    "ld.param.u64 %pitch, [" end "_slice];\nmad.lo.u64 %" end ", %z, %pitch, %" end ";\nadd.u64 %" end ", %" end ", %at;\n"
#define COPY(shift, type, registers)                                                                                                       \
    HEAD "copy(.param .u64 units, .param .u64 dst, .param .u64 dst_pitch, .param .u64 dst_slice,\n"                                        \
         ".param .u64 src, .param .u64 src_pitch, .param .u64 src_slice)\n{\n" UNIT_OF_THREAD(shift) MOVE("dst")                           \
             MOVE("src") "ld.global." type " " registers ", [%src];\nst.global." type " [%dst], " registers ";\nret;\n}\n"
#define FILL(shift, prepare, type, registers)                                                                                              \
    HEAD                                                                                                                                   \
        "fill(.param .u64 units, .param .u64 dst, .param .u64 dst_pitch, .param .u64 dst_slice, .param .u64 pattern)\n{\n" UNIT_OF_THREAD( \
            shift) MOVE("dst") "ld.param.u32 %a0, [pattern];\n" prepare "st.global." type " [%dst], " registers ";\nret;\n}\n"

static const struct ct_builtin_source kernels[] = {
    [COPY_16] = {COPY(4, "v4.u32", "{%a0, %a1, %a2, %a3}"), "copy16", 0, false},
    [COPY_4] = {COPY(2, "u32", "%a0"), "copy4", 0, false},
    [COPY_1] = {COPY(0, "u8", "%a0"), "copy1", 0, false},
    [FILL_16] = {FILL(4, "", "v4.u32", "{%a0, %a0, %a0, %a0}"), "fill16", 0, false},
    [FILL_4] = {FILL(2, "", "u32", "%a0"), "fill4", 0, false},
    /* the pattern's bytes belong to addresses modulo 4 */
    [FILL_1] = {FILL(0, "cvt.u32.u64 %i0, %dst;\nand.b32 %i0, %i0, 3;\nshl.b32 %i0, %i0, 3;\nshr.u32 %a0, %a0, %i0;\n", "u8", "%a0"),
                "fill1", 0, false},
};

void ct_memory_kernels_destroy(struct ct_device *device)
{
    ct_builtin_kernels_destroy(device, &device->memory_kernels);
}

/* ---- use ---- */

static bool is_too_large(const struct ct_stream *stream, uint64_t bytes)
{
    return ct_copy_host_is_fast(stream->context) && bytes > HOST_IS_FASTER_BYTES;
}

/* The memory's address for kernels, or 0: they should not access it, or calls would have to wait for it. */
static uint64_t address_of(const struct ct_stream *stream, const struct ct_place *place)
{
    if (!place->memory || place->memory->texels || place->memory->device != stream->context->backend_device || !place->is_device ||
        place->synchronous || place->owner != stream->context->object.handle || !place->memory->address.v)
        return 0;
    return place->memory->address.v + place->offset;
}

/* Completes a launch of that kernel of `first` and the two that follow it whose unit divides all of `bits`. */
static bool finish(const struct ct_stream *stream, unsigned first, uint64_t bits, uint64_t row_bytes, uint64_t rows, uint64_t slices,
                   struct ct_memory_launch *out)
{
    static const unsigned unit_bytes[] = {16, 4, 1};
    const unsigned unit = bits % 16 == 0 ? 0 : bits % 4 == 0 ? 1 : 2;
    const uint64_t units = row_bytes / unit_bytes[unit], blocks = (units + BLOCK_THREADS - 1) / BLOCK_THREADS;

    if (rows > MOST_ROWS || slices > MOST_ROWS || blocks > stream->context->device->info.max_grid[0])
        return false;
    out->kernel = first + unit;
    out->grid[0] = (uint32_t)blocks;
    out->grid[1] = (uint32_t)rows;
    out->grid[2] = (uint32_t)slices;
    out->params[0] = units;
    return true;
}

/* Each execution of such a copy must be recorded in place_changes.h, which ct_copy_execute does. A launch in the recording of a graph is executed
 * without it. */
static bool records_changes(const struct ct_copy_command *command)
{
    return command->copy.dst.changes_or_null;
}

bool ct_memory_kernels_copy(const struct ct_stream *stream, const struct ct_copy_command *command, struct ct_memory_launch *out)
{
    struct ct_copy copy;
    uint64_t dst, src;

    if (records_changes(command) || !ct_copy_is_direct(command, &copy) || !(dst = address_of(stream, &copy.dst)) ||
        !(src = address_of(stream, &copy.src)) || is_too_large(stream, ct_copy_bytes(&copy)))
        return false;
    if (copy.rows == 1)
        copy.dst_pitch = copy.src_pitch = 0;
    if (copy.slices == 1)
        copy.dst_slice = copy.src_slice = 0;
    *out = (struct ct_memory_launch){.params = {0, dst, copy.dst_pitch, copy.dst_slice, src, copy.src_pitch, copy.src_slice}};
    return finish(stream, COPY_16, dst | src | copy.row_bytes | copy.dst_pitch | copy.src_pitch | copy.dst_slice | copy.src_slice,
                  copy.row_bytes, copy.rows, copy.slices, out);
}

bool ct_memory_kernels_fill(const struct ct_stream *stream, const struct ct_fill *fill, struct ct_memory_launch *out)
{
    const uint64_t dst = fill->rows ? address_of(stream, &fill->place) : 0, pitch = fill->rows > 1 ? fill->pitch : 0;

    if (!dst || is_too_large(stream, fill->row_bytes * fill->rows))
        return false;
    *out = (struct ct_memory_launch){.params = {0, dst, pitch, 0, fill->pattern}};
    return finish(stream, FILL_16, dst | fill->row_bytes | pitch, fill->row_bytes, fill->rows, 1, out);
}

bool ct_memory_kernels_prepare(const struct ct_stream *stream, const struct ct_memory_launch *memory, struct ct_launch *out)
{
    const struct ct_kernel_calls *calls = stream->context->backend->kernels;

    *out = (struct ct_launch){
        .kernel = ct_builtin_kernel_or_null(stream->context->device, &stream->context->device->memory_kernels, kernels, memory->kernel),
        .grid = {memory->grid[0], memory->grid[1], memory->grid[2]},
        .block = {BLOCK_THREADS, 1, 1},
        .params = memory->params,
    };
    return out->kernel && (!calls->prepare || calls->prepare(out, &out->variant) == CUDA_SUCCESS);
}

void ct_memory_kernels_release(const struct ct_stream *stream, const struct ct_launch *launch)
{
    if (launch->variant)
        stream->context->backend->kernels->variant_release(launch->variant);
}

bool ct_memory_launch_equal(const struct ct_memory_launch *a, const struct ct_memory_launch *b)
{
    return a->kernel == b->kernel && !memcmp(a->grid, b->grid, sizeof a->grid) && !memcmp(a->params, b->params, sizeof a->params);
}
