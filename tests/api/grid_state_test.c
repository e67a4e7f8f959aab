/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a block of a cooperative launch that waits (struct ptx2spv_grid) has the size that ptx2spv.h specifies, and no other byte is
 * written: the states of blocks are adjacent, so an extra word of one block would be in the next one's header. Tested with a backend alone
 * (the argument: vulkan or opencl), since a launch through the API would only show an occasional block that never continues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend_vk/vk.h"
#include "counted_objects.h"
#include "core/device/backend.h"
#include "core/device/block_shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 5, MOST_THREADS = 128, GUARD_BYTES = 256, GUARD = 0xa5, GO = 1000 };
#define LONG_ENOUGH (60 * UINT64_C(1000000000)) /* ns */

static const struct ct_backend *backend;

struct fixture {
    struct ct_backend_device *device;
    const struct ct_device_info *info;
    struct ct_queue *queue;
    struct ct_memory *control, *variables; /* struct ptx2spv_grid; the memory that launch.image and launch.fault point to */
    struct ct_memory *words;               /* the word that is waited for, then one for each thread */
};

struct params {
    uint64_t words, grid; /* grid: the additional parameter of cooperative kernels */
};

static const struct row {
    const char *name, *variables;
    const char *keep, *back; /* copies x to memory of the block and back */
    uint32_t threads, static_bytes, dynamic_bytes;
} rows[] = {
    {"no shared memory", "", "", "", 96, 0, 0},
    {"nor whole warps", "", "", "", 41, 0, 0},
    {"a byte", ".shared .b8 v[1];", "st.shared.u8 [v],1;", "ld.shared.u8 y,[v]; add.u32 x,x,y; sub.u32 x,x,1;", 32, 1, 0},
    {"six bytes", ".shared .align 4 .b8 v[6];", "st.shared.u8 [v+5],1;", "ld.shared.u8 y,[v+5]; add.u32 x,x,y; sub.u32 x,x,1;", 64, 6, 0},
    {"dynamic", "", "mov.u32 y,dynamic; mad.lo.u32 y,t,4,y; st.shared.u32 [y],x; mov.u32 x,0;", "ld.shared.u32 x,[y];", 128, 0, 4 * 128},
};

static void ok(CUresult r)
{
    assert_int_equal(r, CUDA_SUCCESS);
}

/* ---- fixture ---- */

static struct ct_memory *make_memory(const struct fixture *f, uint64_t bytes)
{
    const struct ct_memory_request request = {.size_bytes = bytes, .align = 256, .kind = CT_MEMORY_HOST};
    struct ct_memory *memory = NULL;

    ok(backend->memory->create(f->device, &request, &memory));
    memset(memory->host, 0, bytes);
    return memory;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const struct ct_queue_desc desc = {0};
    unsigned count;

    assert_non_null(f);
    ok(backend->enumerate(&f->info, &count));
    ok(backend->device_open(0, &f->device));
    ok(backend->queues->create(f->device, &desc, &f->queue));
    f->control = make_memory(f, sizeof(struct ptx2spv_grid));
    f->variables = make_memory(f, 256);
    f->words = make_memory(f, 4 * (1 + BLOCKS * MOST_THREADS));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    backend->memory->destroy(f->words);
    backend->memory->destroy(f->variables);
    backend->memory->destroy(f->control);
    backend->queues->destroy(f->queue);
    backend->device_close(f->device);
    free(f);
    return 0;
}

/* Each thread of the grid waits for the first word, and adds it to its own number. */
static struct ct_kernel_image *make_kernel(const struct fixture *f, const struct row *row, struct ptx2spv_kernel *out)
{
    const struct ptx2spv_options options = {.cooperative = true};
    struct ptx2spv_module *module;
    struct ct_kernel_image *image = NULL;
    char text[2048];

    assert_true(snprintf(text, sizeof text,
                         ".version 7.0\n.target sm_70\n.address_size 64\n.extern .shared .align 16 .b8 dynamic[];\n"
                         ".visible .entry k(.param .u64 words)\n{\n.reg .pred p; .reg .b32 t, x, y, z; .reg .b64 w, o; %s\n"
                         "ld.param.u64 w,[words]; mov.u32 t,%%tid.x; mov.u32 x,%%ctaid.x; mov.u32 y,%%ntid.x; mad.lo.u32 x,x,y,t;\n"
                         "mul.wide.u32 o,x,4; add.u64 o,o,w;\n%s\nWAIT: ld.volatile.global.u32 z,[w]; setp.eq.u32 p,z,0; @p bra WAIT;\n%s\n"
                         "add.u32 x,x,z; st.global.u32 [o+4],x; ret;\n}\n",
                         row->variables, row->keep, row->back) < (int)sizeof text);
    assert_int_equal(ptx2spv_module_create(text, strlen(text), &options, &module), PTX2SPV_OK);
    assert_int_equal(ptx2spv_kernel_compile(module, 0, &f->info->target, &options, out), PTX2SPV_OK);
    ptx2spv_module_destroy(module);
    assert_int_equal(out->info.param_bytes, sizeof(struct params));
    assert_int_equal(out->info.grid_param_offset, offsetof(struct params, grid));
    ok(backend->kernels->create(f->device, row->name, out, &image));
    return image;
}

/* ---- the test ---- */

static uint64_t documented_bytes(const struct fixture *f, const struct row *row, const struct ptx2spv_kernel_info *info)
{
    const struct ct_block_shared shared = ct_block_shared(info, row->dynamic_bytes, row->threads, f->info->shared_bytes);

    assert_true(shared.own_bytes >= row->static_bytes + row->dynamic_bytes);
    return PTX2SPV_GRID_HEADER_BYTES + shared.all_bytes + (uint64_t)row->threads * 4 * info->grid_thread_words;
}

/* Dispatches once; returns the number of blocks that wait then. */
static uint32_t dispatch(const struct fixture *f, const struct ct_launch *launch)
{
    struct ptx2spv_grid *grid = f->control->host;

    grid->waiting = 0;
    ok(backend->queues->launch(f->queue, launch));
    ok(backend->queues->await(f->queue, backend->queues->point(f->queue), LONG_ENOUGH, false));
    grid->phase = 1;
    return grid->waiting;
}

static void check_guards(const struct row *row, const unsigned char *states, uint64_t bytes, uint64_t stride)
{
    for (uint64_t block = 0; block < BLOCKS; block++)
        for (uint64_t i = bytes; i < stride; i++)
            if (states[block * stride + i] != GUARD)
                fail_msg("%s: block %u writes beyond the %u bytes of its state, at byte %u", row->name, (unsigned)block, (unsigned)bytes,
                         (unsigned)i);
}

static void run_row(struct fixture *f, const struct row *row)
{
    struct ptx2spv_kernel kernel;
    struct ct_kernel_image *image = make_kernel(f, row, &kernel);
    const uint64_t bytes = documented_bytes(f, row, &kernel.info), stride = (bytes + 7) / 8 * 8 + GUARD_BYTES;
    struct ct_memory *states = make_memory(f, BLOCKS * stride);
    const struct params params = {f->words->address.v, f->control->address.v};
    const struct ct_launch launch = {.kernel = image,
                                     .grid = {BLOCKS, 1, 1},
                                     .block = {row->threads, 1, 1},
                                     .params = &params,
                                     .dynamic_shared_bytes = row->dynamic_bytes,
                                     .image = f->variables->address,
                                     .fault = f->variables->address};
    uint32_t *words = f->words->host;

    memset(states->host, GUARD, BLOCKS * stride);
    *(struct ptx2spv_grid *)f->control->host = (struct ptx2spv_grid){.states = states->address.v, .stride = stride};
    words[0] = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dispatch(f, &launch), BLOCKS);
        check_guards(row, states->host, bytes, stride);
    }
    words[0] = GO;
    assert_int_equal(dispatch(f, &launch), 0);
    check_guards(row, states->host, bytes, stride);
    for (uint32_t t = 0; t < BLOCKS * row->threads; t++)
        assert_int_equal(words[1 + t], t + GO);
    backend->kernels->destroy(image);
    backend->memory->destroy(states);
    ptx2spv_kernel_finish(&kernel);
}

static void test_rows(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        run_row(*state, &rows[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    const struct ct_device_info *infos;
    unsigned count;
    int failed;

#ifdef CT_WITH_OPENCL
    if (argc == 2 && !strcmp(argv[1], ct_backend_cl.name))
        backend = &ct_backend_cl;
#endif
    if (argc == 2 && !strcmp(argv[1], ct_backend_vk.name))
        backend = &ct_backend_vk;
    if (!backend) {
        fprintf(stderr, "usage: %s vulkan|opencl\n", argv[0]);
        return EXIT_FAILURE;
    }
    if (backend->enumerate(&infos, &count) != CUDA_SUCCESS || !count) {
        printf("no device of the backend %s\n", backend->name);
        return 77;
    }
    counted_objects_begin();
    failed = cmocka_run_group_tests(tests, setup, teardown);
    /* Not in the teardown: cmocka's result does not include a group's teardown. */
    return failed || counted_objects_leaked() || ct_vk_validation_messages();
}
