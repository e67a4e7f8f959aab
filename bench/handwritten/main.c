/* SPDX-License-Identifier: Apache-2.0 */
/* Compares CUDA kernels run by Cuttle with the same kernels written by hand for the underlying API: GLSL for Vulkan, OpenCL C for OpenCL, and
 * graphs of kernels in a row with command buffers that have barriers between their dispatches. Both
 * run alternately in one process on one device; times include launch and wait. The minimum of each is printed, and results are compared.
 *   bench_handwritten vulkan|opencl [ROUNDS [KERNEL]]
 * With CUTTLE_MATH=fast Cuttle uses the driver's own operations, as the handwritten kernels do. */
#include "example.h"
#include "handwritten.h"
#include "../timing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 256
#define SOFTENING 1e-3f

/* Words of copies, rows of matrices, bodies, and words of sums: about 10 to 100 ms on two CPU cores. */
enum {
    COPY_SIZE = 1 << 24,
    SGEMM_SIZE = 512,
    NBODY_SIZE = 4096,
    REDUCTION_SIZE = 1 << 24,
    REDUCTION_BLOCKS = 256,
    ROW_SIZE = 4096,
    TEXTURE_SIDE = 1024
};

static const char copy_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry copy(.param .u64 in, .param .u64 out, .param .u32 n)\n{\n"
    ".reg .pred p; .reg .b32 i, b, z, w; .reg .b64 s, t, d;\nld.param.u64 s,[in]; ld.param.u64 t,[out]; ld.param.u32 w,[n];\n"
    "mov.u32 i,%tid.x; mov.u32 b,%ctaid.x; mov.u32 z,%ntid.x; mad.lo.s32 i,b,z,i; setp.ge.u32 p,i,w; @p bra OUT;\n"
    "cvta.to.global.u64 s,s; cvta.to.global.u64 t,t; mul.wide.u32 d,i,4; add.s64 s,s,d; ld.global.f32 w,[s]; add.s64 t,t,d;\n"
    "st.global.f32 [t],w;\nOUT: ret;\n}\n";

/* As texture.comp. */
#define FETCH "tex.2d.v4.f32.f32 {f4,f5,f6,f7},[d1,{f0,f1}];add.f32 f3,f3,f4;"
#define RIGHT "add.f32 f0,f0,0f3F800000;"
#define ROW FETCH RIGHT FETCH RIGHT FETCH RIGHT FETCH "sub.f32 f0,f0,0f40400000;add.f32 f1,f1,0f3F800000;\n"
static const char texture_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry texture(.param .u64 in, .param .u64 out, .param .u32 n, .param .f32 "
    "x)\n{\n"
    ".reg .f32 f<8>; .reg .b32 r<6>; .reg .b64 d<4>;\nld.param.u64 d1,[in]; ld.param.u64 d0,[out]; ld.param.u32 r3,[n]; ld.param.f32 "
    "f2,[x];\n"
    "mov.u32 r4,%ctaid.x; mov.u32 r5,%tid.x; mad.lo.u32 r0,r4,32,r5; mov.u32 r4,%ctaid.y; mov.u32 r5,%tid.y; mad.lo.u32 r1,r4,8,r5;\n"
    "mad.lo.u32 r4,r1,r3,r0; mul.wide.u32 d2,r4,4; add.u64 d3,d0,d2; cvt.rn.f32.u32 f0,r0; add.f32 f0,f0,f2;\n"
    "cvt.rn.f32.u32 f1,r1; add.f32 f1,f1,f2; mov.f32 f3,0f00000000;\n" ROW ROW ROW ROW "st.global.f32 [d3],f3; ret;\n}\n";

static const struct comparison {
    const char *hand, *cuda, *file; /* names of the kernels; a PTX file of the examples, or of this program */
    unsigned n;
    size_t words[HAND_BUFFERS]; /* the last is the result */
    unsigned groups[2], local[2];
    float x;
    unsigned row;              /* kernels of a graph, each behind the one before; 0: a single launch */
    enum hand_texture texture; /* the first buffer is that of a texture */
} comparisons[] = {
    {"copy", "copy", NULL, COPY_SIZE, {COPY_SIZE, COPY_SIZE}, {COPY_SIZE / BLOCK, 1}, {BLOCK, 1}, 0, 0, 0},
    {"sgemm",
     "matrix_multiply",
     "matrix_multiply",
     SGEMM_SIZE,
     {SGEMM_SIZE * SGEMM_SIZE, SGEMM_SIZE *SGEMM_SIZE, SGEMM_SIZE *SGEMM_SIZE},
     {SGEMM_SIZE / 64, SGEMM_SIZE / 64},
     {16, 16},
     0,
     0,
     0},
    {"nbody", "nbody_f32", "nbody", NBODY_SIZE, {4 * NBODY_SIZE, 3 * NBODY_SIZE}, {NBODY_SIZE / BLOCK, 1}, {BLOCK, 1}, SOFTENING, 0, 0},
    {"reduction", "reduction", "reduction", REDUCTION_SIZE, {REDUCTION_SIZE, REDUCTION_BLOCKS}, {REDUCTION_BLOCKS, 1}, {BLOCK, 1}, 0, 0, 0},
    {"copy", "copy", NULL, ROW_SIZE, {ROW_SIZE, ROW_SIZE}, {ROW_SIZE / BLOCK, 1}, {BLOCK, 1}, 0, 10, 0},
    {"copy", "copy", NULL, ROW_SIZE, {ROW_SIZE, ROW_SIZE}, {ROW_SIZE / BLOCK, 1}, {BLOCK, 1}, 0, 1000, 0},
    {"texture",
     "texture",
     NULL,
     TEXTURE_SIDE,
     {TEXTURE_SIDE * TEXTURE_SIDE, TEXTURE_SIDE *TEXTURE_SIDE},
     {TEXTURE_SIDE / 32, TEXTURE_SIDE / 8},
     {32, 8},
     0.5f,
     0,
     HAND_POINT},
    {"texture",
     "texture",
     NULL,
     TEXTURE_SIDE,
     {TEXTURE_SIDE * TEXTURE_SIDE, TEXTURE_SIDE *TEXTURE_SIDE},
     {TEXTURE_SIDE / 32, TEXTURE_SIDE / 8},
     {32, 8},
     0.3f,
     0,
     HAND_LINEAR},
};

void hand_fail(const char *what, int code)
{
    fprintf(stderr, "bench_handwritten: %s (%d)\n", what, code);
    exit(EXIT_FAILURE);
}

/* ---- one kernel in both implementations ---- */

struct sides {
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory[HAND_BUFFERS];
    unsigned n_buffers;
    CUgraphExec row; /* of a comparison with a row */
    CUarray array;   /* of one with a texture */
    CUtexObject texture;
};

static float *make_values(size_t n)
{
    float *values = malloc(n * sizeof *values);
    unsigned state = 5;

    if (!values)
        hand_fail("no memory", 0);
    for (size_t i = 0; i < n; i++)
        values[i] = example_random_float(&state);
    return values;
}

static void load(const struct comparison *c, const char *suffix, struct sides *out)
{
    char name[64];
    size_t size;

    snprintf(name, sizeof name, "ptx/%s%s", c->file ? c->file : "", suffix);
    char *text = c->file ? example_read_file(example_beside(name), &size) : strdup(c->texture ? texture_ptx : copy_ptx);
    CHECK(cuModuleLoadData(&out->module, text));
    CHECK(cuModuleGetFunction(&out->function, out->module, c->cuda));
    free(text);
}

static void make_buffers(const struct comparison *c, const struct hand_api *api, struct sides *sides, struct hand_launch *launch)
{
    for (unsigned i = 0; i < HAND_BUFFERS && c->words[i]; i++) {
        const bool is_result = i + 1 == HAND_BUFFERS || !c->words[i + 1];
        float *values = is_result ? NULL : make_values(c->words[i]);
        const size_t bytes = c->words[i] * sizeof(float);

        sides->memory[i] = example_upload(values, bytes);
        launch->buffers[i] = api->buffer(values, bytes);
        launch->n_buffers = sides->n_buffers = i + 1;
        free(values);
    }
}

static void make_texture(const struct comparison *c, struct sides *sides)
{
    const CUDA_ARRAY_DESCRIPTOR desc = {c->n, c->n, CU_AD_FORMAT_FLOAT, 1};
    const CUDA_TEXTURE_DESC how = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP},
                                   .filterMode = c->texture == HAND_LINEAR ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT};
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = sides->memory[0],
                          .srcPitch = c->n * sizeof(float),
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .WidthInBytes = c->n * sizeof(float),
                          .Height = c->n};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};

    CHECK(cuArrayCreate(&sides->array, &desc));
    copy.dstArray = resource.res.array.hArray = sides->array;
    CHECK(cuMemcpy2D(&copy));
    CHECK(cuTexObjectCreate(&sides->texture, &resource, &how, NULL));
}

struct params {
    unsigned n;
    float x;
    void *list[HAND_BUFFERS + 2]; /* x is ignored for kernels without this parameter */
};

static void set_params(const struct comparison *c, struct sides *sides, struct params *out)
{
    out->n = c->n;
    out->x = c->x;
    for (unsigned i = 0; i < sides->n_buffers; i++)
        out->list[i] = c->texture && !i ? (void *)&sides->texture : &sides->memory[i];
    out->list[sides->n_buffers] = &out->n;
    out->list[sides->n_buffers + 1] = &out->x;
}

static void make_row(const struct comparison *c, struct sides *sides)
{
    struct params params;
    const CUDA_KERNEL_NODE_PARAMS node = {.func = sides->function,
                                          .gridDimX = c->groups[0],
                                          .gridDimY = c->groups[1],
                                          .gridDimZ = 1,
                                          .blockDimX = c->local[0],
                                          .blockDimY = c->local[1],
                                          .blockDimZ = 1,
                                          .kernelParams = params.list};
    CUgraphNode last;
    CUgraph graph;

    set_params(c, sides, &params);
    CHECK(cuGraphCreate(&graph, 0));
    for (unsigned i = 0; i < c->row; i++)
        CHECK(cuGraphAddKernelNode(&last, graph, i ? &last : NULL, i ? 1 : 0, &node));
    CHECK(cuGraphInstantiate(&sides->row, graph, 0));
    CHECK(cuGraphDestroy(graph));
}

static double time_cuda(const struct comparison *c, struct sides *sides)
{
    const double start = now_us();
    struct params params;

    set_params(c, sides, &params);
    if (c->row)
        CHECK(cuGraphLaunch(sides->row, NULL));
    else
        CHECK(cuLaunchKernel(sides->function, c->groups[0], c->groups[1], 1, c->local[0], c->local[1], 1, 0, NULL, params.list, NULL));
    CHECK(cuCtxSynchronize());
    return now_us() - start;
}

static double time_hand(const struct hand_api *api)
{
    const double start = now_us();

    api->run();
    return now_us() - start;
}

/* The greatest difference of the results, divided by the greatest result. */
static double difference(const struct comparison *c, const struct hand_api *api, const struct sides *sides,
                         const struct hand_launch *launch)
{
    const unsigned last = sides->n_buffers - 1;
    const size_t bytes = c->words[last] * sizeof(float);
    float *ours = malloc(bytes), *theirs = malloc(bytes);
    double most = 0, scale = 0;

    if (!ours || !theirs)
        hand_fail("no memory", 0);
    example_download(ours, sides->memory[last], bytes);
    api->read(launch->buffers[last], theirs, bytes);
    for (size_t i = 0; i < c->words[last]; i++) {
        most = fmax(most, fabs((double)ours[i] - theirs[i]));
        scale = fmax(scale, fabs((double)theirs[i]));
    }
    free(ours);
    free(theirs);
    return scale > 0 ? most / scale : 1;
}

static bool compare(const struct comparison *c, const char *style, const char *suffix, const struct hand_api *api, unsigned rounds)
{
    struct hand_launch launch = {.kernel = c->hand,
                                 .groups = {c->groups[0], c->groups[1]},
                                 .local = {c->local[0], c->local[1]},
                                 .times = c->row ? c->row : 1,
                                 .texture = c->texture,
                                 .scalars = {c->n, c->x}};
    double cuda = 1e30, hand = 1e30;
    struct sides sides = {0};

    load(c, suffix, &sides);
    make_buffers(c, api, &sides, &launch);
    if (c->row)
        make_row(c, &sides);
    if (c->texture)
        make_texture(c, &sides);
    api->prepare(&launch);
    for (unsigned round = 0; round <= rounds; round++) {
        const double ours = time_cuda(c, &sides), theirs = time_hand(api);

        if (round) { /* the first launch compiles */
            cuda = fmin(cuda, ours);
            hand = fmin(hand, theirs);
        }
    }
    const double apart = difference(c, api, &sides, &launch),
                 allowed = c->texture == HAND_LINEAR ? 1.0 / 256 : 1e-4; /* a unit of the fraction */
    printf("%4u x %-10s %-6s %10.3f ms, by hand %10.3f ms, ratio %6.3f%s\n", launch.times, c->hand,
           c->texture == HAND_POINT    ? "point"
           : c->texture == HAND_LINEAR ? "linear"
                                       : style,
           cuda * 1e-3, hand * 1e-3, hand / cuda, apart > allowed ? "  RESULTS DIFFER" : "");
    if (c->row)
        CHECK(cuGraphExecDestroy(sides.row));
    if (c->texture) {
        CHECK(cuTexObjectDestroy(sides.texture));
        CHECK(cuArrayDestroy(sides.array));
    }
    CHECK(cuModuleUnload(sides.module));
    for (unsigned i = 0; i < sides.n_buffers; i++)
        CHECK(cuMemFree(sides.memory[i]));
    return apart <= allowed;
}

static const struct hand_api *api_of(const char *name)
{
#ifdef HAVE_GLSL
    if (!strcmp(name, hand_vulkan.name))
        return &hand_vulkan;
#endif
#ifdef HAVE_OPENCL
    if (!strcmp(name, hand_opencl.name))
        return &hand_opencl;
#endif
    hand_fail("usage: bench_handwritten vulkan|opencl [ROUNDS [KERNEL]], as far as it was built with them", 0);
}

int main(int argc, char **argv)
{
    const struct hand_api *api = api_of(argc > 1 ? argv[1] : "");
    const unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 9;
    char name[256] = "";
    bool agree = true;
    CUcontext context;
    CUdevice device;

    setenv("CUTTLE_BACKEND", api->name, 0);
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuCtxCreate(&context, NULL, 0, device));
    api->open();
    printf("%s\n", name);
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
        if (argc > 3 && strcmp(argv[3], comparisons[i].hand))
            continue;
        if (comparisons[i].texture && strcmp(api->name, "vulkan"))
            continue;
        if (HAVE_CLANG || !comparisons[i].file)
            agree &= compare(&comparisons[i], comparisons[i].file ? "clang" : "ptx", ".ptx", api, rounds);
        if (comparisons[i].file)
            agree &= compare(&comparisons[i], "nvcc", ".nvcc.ptx", api, rounds);
    }
    api->close();
    CHECK(cuCtxDestroy(context));
    return agree ? EXIT_SUCCESS : EXIT_FAILURE;
}
