/* SPDX-License-Identifier: Apache-2.0 */
/* Surfaces: loads and stores of every geometry, element size and boundary mode against a copy of the array on the host; formatted stores,
 * reductions; what other commands write and read; handles that are no longer valid. */
#include "texture_kernels.h"

#include <math.h>
#include <stdbool.h>

#define N 300u
#define BYTES_MAX 16u

/* A kernel with the object d0, the place {r0, r1, r2} (bytes, rows, planes or layers), and the address d1 of 16 bytes of data. */
#define SURFACE_KERNEL(name, body)                                                                                                         \
    ".visible .entry " name "(.param .u64 object, .param .u64 places, .param .u64 data, .param .u32 n)\n"                                  \
    "{\n"                                                                                                                                  \
    "    .reg .pred p;\n"                                                                                                                  \
    "    .reg .b16 h;\n"                                                                                                                   \
    "    .reg .b32 r<8>, a<4>;\n"                                                                                                          \
    "    .reg .b64 d<8>;\n"                                                                                                                \
    "    ld.param.u64 d0, [object];\n"                                                                                                     \
    "    ld.param.u64 d2, [places];\n"                                                                                                     \
    "    ld.param.u64 d1, [data];\n"                                                                                                       \
    "    ld.param.u32 r4, [n];\n"                                                                                                          \
    "    mov.u32 r5, %ctaid.x;\n"                                                                                                          \
    "    mov.u32 r6, %ntid.x;\n"                                                                                                           \
    "    mov.u32 r7, %tid.x;\n"                                                                                                            \
    "    mad.lo.u32 r5, r5, r6, r7;\n"                                                                                                     \
    "    setp.ge.u32 p, r5, r4;\n"                                                                                                         \
    "    @p bra done;\n"                                                                                                                   \
    "    mul.wide.u32 d3, r5, 16;\n"                                                                                                       \
    "    add.u64 d2, d2, d3;\n"                                                                                                            \
    "    add.u64 d1, d1, d3;\n"                                                                                                            \
    "    ld.global.v4.u32 {r0, r1, r2, r3}, [d2];\n"                                                                                       \
    "    " body "\n"                                                                                                                       \
    "done:\n"                                                                                                                              \
    "    ret;\n"                                                                                                                           \
    "}\n"
#define LOAD(geometry, bytes, type, registers, place, mode)                                                                                \
    SURFACE_KERNEL("load_" geometry "_" bytes "_" mode,                                                                                    \
                   "suld.b." geometry "." type "." mode " " registers ",[d0," place "];st.global." type " [d1]," registers ";")
#define STORE(geometry, bytes, type, registers, place, mode)                                                                               \
    SURFACE_KERNEL("store_" geometry "_" bytes "_" mode,                                                                                   \
                   "ld.global." type " " registers ",[d1];sust.b." geometry "." type "." mode " [d0," place "]," registers ";")
#define BOTH(geometry, bytes, type, registers, place, mode)                                                                                \
    LOAD(geometry, bytes, type, registers, place, mode) STORE(geometry, bytes, type, registers, place, mode)
/* clang-format off */
#define SIZES(geometry, place, mode) \
    BOTH(geometry, "1", "b8", "h", place, mode) \
    BOTH(geometry, "2", "b16", "h", place, mode) \
    BOTH(geometry, "4", "b32", "a0", place, mode) \
    BOTH(geometry, "8", "v2.b32", "{a0,a1}", place, mode) \
    BOTH(geometry, "16", "v4.b32", "{a0,a1,a2,a3}", place, mode)
/* clang-format on */
#define MODES(geometry, place) SIZES(geometry, place, "trap") SIZES(geometry, place, "clamp") SIZES(geometry, place, "zero")
static const char *const modules[] = {
    ".version 6.4\n.target sm_70\n.address_size 64\n" MODES("1d", "{r0}"),
    ".version 6.4\n.target sm_70\n.address_size 64\n" MODES("2d", "{r0,r1}"),
    ".version 6.4\n.target sm_70\n.address_size 64\n" MODES("3d", "{r0,r1,r2,r2}"),
    ".version 6.4\n.target sm_70\n.address_size 64\n" MODES("a1d", "{r2,r0}"),
    ".version 6.4\n.target sm_70\n.address_size 64\n" MODES("a2d", "{r2,r0,r1,r1}"),
    ".version 6.4\n.target sm_70\n.address_size 64\n" SURFACE_KERNEL(
        "format", "ld.global.v4.b32 {a0,a1,a2,a3},[d1];sust.p.2d.v4.b32.zero [d0,{r0,r1}],{a0,a1,a2,a3};")
        SURFACE_KERNEL("add", "ld.global.b32 a0,[d1];sured.b.add.2d.u32.zero [d0,{r0,r1}],a0;")
            SURFACE_KERNEL("sizes", "suq.width.b32 a0,[d0];suq.height.b32 a1,[d0];st.global.v2.b32 [d1],{a0,a1};"),
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct geometry {
    const char *name;
    unsigned width, height, depth, flags;
} geometries[] = {
    {"1d", 19, 0, 0, 0},
    {"2d", 11, 6, 0, 0},
    {"3d", 5, 6, 4, 0},
    {"a1d", 13, 0, 5, CUDA_ARRAY3D_LAYERED},
    {"a2d", 7, 5, 3, CUDA_ARRAY3D_LAYERED},
};
static const struct element {
    unsigned bytes;
    CUarray_format format;
    unsigned channels;
} elements[] = {
    {1, CU_AD_FORMAT_UNSIGNED_INT8, 1}, {2, CU_AD_FORMAT_UNSIGNED_INT8, 2},   {4, CU_AD_FORMAT_FLOAT, 1},
    {8, CU_AD_FORMAT_HALF, 4},          {16, CU_AD_FORMAT_UNSIGNED_INT32, 4},
};
static const char *const modes[] = {"trap", "clamp", "zero"};

struct spot {
    int32_t x_bytes, y, z, unused;
};

static CUmodule loaded[COUNT(modules)];
static CUdeviceptr device_spots, device_data;
static uint64_t random_state = 1;

static uint32_t random_bits(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

/* ---- an array and its copy on the host ---- */

struct surface {
    bool layered;
    CUarray array;
    CUsurfObject object;
    unsigned row, height, depth; /* bytes, rows, planes */
    unsigned char bytes[8192];
};

static size_t total(const struct surface *surface)
{
    return (size_t)surface->row * surface->height * surface->depth;
}

static void copy(const struct surface *surface, void *host, bool to_array)
{
    CUDA_MEMCPY3D copy = {.WidthInBytes = surface->row, .Height = surface->height, .Depth = surface->depth};

    if (to_array) {
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = host;
        copy.srcPitch = surface->row;
        copy.srcHeight = surface->height;
        copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.dstArray = surface->array;
    } else {
        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost = host;
        copy.dstPitch = surface->row;
        copy.dstHeight = surface->height;
        copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.srcArray = surface->array;
    }
    ok(cuMemcpy3D(&copy));
}

static void create(struct surface *surface, const struct geometry *geometry, const struct element *element)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = geometry->width,
                                          .Height = geometry->height,
                                          .Depth = geometry->depth,
                                          .Format = element->format,
                                          .NumChannels = element->channels,
                                          .Flags = geometry->flags | CUDA_ARRAY3D_SURFACE_LDST};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};

    surface->layered = geometry->flags;
    surface->row = geometry->width * element->bytes;
    surface->height = geometry->height ? geometry->height : 1;
    surface->depth = geometry->depth ? geometry->depth : 1;
    assert_true(total(surface) <= sizeof surface->bytes);
    ok(cuArray3DCreate(&surface->array, &desc));
    for (size_t i = 0; i < total(surface); i++)
        surface->bytes[i] = (unsigned char)(random_bits() >> 3);
    copy(surface, surface->bytes, true);
    resource.res.array.hArray = surface->array;
    ok(cuSurfObjectCreate(&surface->object, &resource));
}

static void destroy(struct surface *surface)
{
    ok(cuSurfObjectDestroy(surface->object));
    ok(cuArrayDestroy(surface->array));
}

static void run(CUmodule module, const char *kernel, unsigned long long object, const struct spot *spots, unsigned char *data, uint32_t n)
{
    void *parameters[] = {&object, &device_spots, &device_data, &n};
    CUfunction function;

    ok(cuModuleGetFunction(&function, module, kernel));
    ok(cuMemcpyHtoD(device_spots, spots, n * sizeof *spots));
    ok(cuMemcpyHtoD(device_data, data, n * BYTES_MAX));
    ok(cuLaunchKernel(function, (n + 63) / 64, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
    ok(cuMemcpyDtoH(data, device_data, n * BYTES_MAX));
}

/* ---- places ---- */

static int random_around(unsigned n, bool outside)
{
    return outside ? (int)(random_bits() % (3 * n)) - (int)n : (int)(random_bits() % n);
}

static void random_spots(const struct surface *surface, unsigned bytes, bool outside, struct spot *spots)
{
    for (unsigned i = 0; i < N; i++)
        spots[i] = (struct spot){random_around(surface->row / bytes, outside) * (int)bytes,
                                 surface->height > 1 ? random_around(surface->height, outside) : 0,
                                 surface->depth > 1 ? random_around(surface->depth, outside) : 0, 0};
}

static int clamped(int i, int last)
{
    return i < 0 ? 0 : i > last ? last : i;
}

/* The bytes that a place stands for; NULL: none. */
static unsigned char *bytes_at(struct surface *surface, const struct spot *spot, unsigned bytes, bool clamps)
{
    const int last_x = (int)(surface->row - bytes), last_y = (int)surface->height - 1, last_z = (int)surface->depth - 1;
    const int x = clamped(spot->x_bytes, last_x), y = clamped(spot->y, last_y),
              z = spot->z < 0 && surface->layered ? last_z : clamped(spot->z, last_z); /* layers are unsigned */

    if (!clamps && (x != spot->x_bytes || y != spot->y || z != spot->z))
        return NULL;
    return surface->bytes + ((size_t)z * surface->height + (size_t)y) * surface->row + (size_t)x;
}

/* ---- tests ---- */

static void loads_read_the_array(void **state)
{
    (void)state;
    for (size_t g = 0; g < COUNT(geometries); g++)
        for (size_t e = 0; e < COUNT(elements); e++)
            for (size_t m = 0; m < COUNT(modes); m++) {
                static struct surface surface;
                static struct spot spots[N];
                static unsigned char data[N * BYTES_MAX];
                static const unsigned char zeros[BYTES_MAX];
                char kernel[32];

                create(&surface, &geometries[g], &elements[e]);
                random_spots(&surface, elements[e].bytes, m > 0, spots);
                snprintf(kernel, sizeof kernel, "load_%s_%u_%s", geometries[g].name, elements[e].bytes, modes[m]);
                run(loaded[g], kernel, surface.object, spots, data, N);
                for (unsigned i = 0; i < N; i++) {
                    const unsigned char *expected = bytes_at(&surface, &spots[i], elements[e].bytes, m == 1);

                    if (memcmp(data + i * BYTES_MAX, expected ? expected : zeros, elements[e].bytes))
                        fail_msg("%s at byte %d, %d, %d", kernel, spots[i].x_bytes, spots[i].y, spots[i].z);
                }
                destroy(&surface);
            }
}

/* Threads that store to the same place would race, so each place is used once. */
static void stores_write_the_array(void **state)
{
    (void)state;
    for (size_t g = 0; g < COUNT(geometries); g++)
        for (size_t e = 0; e < COUNT(elements); e++)
            for (size_t m = 0; m < COUNT(modes); m++) {
                static struct surface surface;
                static unsigned char data[N * BYTES_MAX], now[sizeof surface.bytes];
                const unsigned bytes = elements[e].bytes;
                char kernel[32];

                create(&surface, &geometries[g], &elements[e]);
                snprintf(kernel, sizeof kernel, "store_%s_%u_%s", geometries[g].name, bytes, modes[m]);
                for (unsigned i = 0; i < 20; i++) {
                    struct spot spots[N];
                    unsigned char *to;

                    random_spots(&surface, bytes, m > 0, spots);
                    for (unsigned k = 0; k < BYTES_MAX; k++)
                        data[k] = (unsigned char)(random_bits() >> 5);
                    run(loaded[g], kernel, surface.object, spots, data, 1);
                    if ((to = bytes_at(&surface, &spots[0], bytes, m == 1)))
                        memcpy(to, data, bytes);
                }
                copy(&surface, now, false);
                if (memcmp(now, surface.bytes, total(&surface)))
                    fail_msg("%s", kernel);
                destroy(&surface);
            }
}

/* sust.p takes elements for x, and converts components to the format. */
static void formatted_stores_convert(void **state)
{
    static const struct element formats[] = {{4, CU_AD_FORMAT_UNSIGNED_INT8, 4},
                                             {4, CU_AD_FORMAT_SIGNED_INT16, 2},
                                             {16, CU_AD_FORMAT_FLOAT, 4},
                                             {8, CU_AD_FORMAT_HALF, 4},
                                             {4, CU_AD_FORMAT_UNORM_INT_101010_2, 4}};
    static const uint32_t integers[4] = {7, 200, 3, 255};
    static const float floats[4] = {0.5f, -1.75f, 1024.0f, 3.0e-5f};
    static const uint16_t halves[4] = {0x3800, 0xbf00, 0x6400, 0x01f7};
    static const int16_t shorts[2] = {7, 200};
    static const uint8_t chars[4] = {7, 200, 3, 255};
    static const uint32_t packed[1] = {511 | 1023u << 20}; /* halves are rounded down */
    static const void *const expected[] = {chars, shorts, floats, halves, packed};

    (void)state;
    for (size_t f = 0; f < COUNT(formats); f++) {
        static struct surface surface;
        unsigned char now[sizeof surface.bytes], data[BYTES_MAX];

        create(&surface, &geometries[1], &formats[f]);
        memcpy(data, f < 2 ? (const void *)integers : floats, sizeof data);
        run(loaded[5], "format", surface.object, &(struct spot){3, 2, 0, 0}, data, 1);
        copy(&surface, now, false);
        assert_memory_equal(now + 2 * surface.row + 3 * formats[f].bytes, expected[f], formats[f].bytes);
        memcpy(surface.bytes + 2 * surface.row + 3 * formats[f].bytes, expected[f], formats[f].bytes);
        assert_memory_equal(now, surface.bytes, total(&surface));
        destroy(&surface);
    }
}

static void reductions_add(void **state)
{
    static const struct element word = {4, CU_AD_FORMAT_UNSIGNED_INT32, 1};
    static struct surface surface;
    static struct spot spots[N];
    static unsigned char data[N * BYTES_MAX];
    uint32_t now[11 * 6], expected[11 * 6];

    (void)state;
    create(&surface, &geometries[1], &word);
    memcpy(expected, surface.bytes, sizeof expected);
    random_spots(&surface, 4, false, spots);
    for (uint32_t i = 0; i < N; i++) {
        memcpy(data + i * BYTES_MAX, &i, sizeof i);
        expected[spots[i].y * 11 + spots[i].x_bytes / 4] += i;
    }
    run(loaded[5], "add", surface.object, spots, data, N);
    copy(&surface, now, false);
    assert_memory_equal(now, expected, sizeof now);
    run(loaded[5], "sizes", surface.object, spots, data, 1);
    memcpy(now, data, 8);
    assert_int_equal(now[0], 11);
    assert_int_equal(now[1], 6);
    destroy(&surface);
}

/* What a kernel writes by a surface is seen by later fetches from a texture of the array, and so is what is copied to the array. */
static void textures_see_stores_and_copies(void **state)
{
    static const struct element real = {4, CU_AD_FORMAT_FLOAT, 1};
    static struct surface surface;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    const CUDA_TEXTURE_DESC how = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}};
    const struct place middle = {.x = 3.5f, .y = 2.5f};
    unsigned char data[BYTES_MAX] = {0};
    uint32_t result[4];
    CUtexObject texture;

    (void)state;
    create(&surface, &geometries[1], &real);
    resource.res.array.hArray = surface.array;
    ok(cuTexObjectCreate(&texture, &resource, &how, NULL));
    for (int i = 0; i < 10; i++) {
        const float stored = (float)i * 1.5f, copied = -(float)i;

        memcpy(data, &stored, sizeof stored);
        run(loaded[1], "store_2d_4_trap", surface.object, &(struct spot){3 * 4, 2, 0, 0}, data, 1);
        fetch("fetch_2d", texture, &middle, 1, result);
        assert_memory_equal(result, &stored, sizeof stored);
        memcpy(surface.bytes + 2 * surface.row + 3 * 4, &copied, sizeof copied);
        copy(&surface, surface.bytes, true);
        fetch("fetch_2d", texture, &middle, 1, result);
        assert_memory_equal(result, &copied, sizeof copied);
    }
    ok(cuTexObjectDestroy(texture));
    destroy(&surface);
}

/* Kernels get zeros from handles that are no objects, and store nothing. NVIDIA's driver promises nothing. */
static void stale_handles_are_harmless(void **state)
{
    static const struct element real = {4, CU_AD_FORMAT_FLOAT, 1};
    static struct surface surface;
    static const unsigned long long wrong[] = {0, 1, 0x123456789abcdefull, ~0ull, 0x100000001ull, 0x7fffffffffffffffull};
    unsigned char data[BYTES_MAX] = {1, 2, 3, 4}, now[sizeof surface.bytes];
    unsigned long long object;
    uint32_t result[4];

    (void)state;
    if (!on_cuttle())
        skip();
    create(&surface, &geometries[1], &real);
    object = surface.object;
    ok(cuSurfObjectDestroy(object));
    run(loaded[1], "store_2d_4_trap", object, &(struct spot){0, 0, 0, 0}, data, 1);
    copy(&surface, now, false);
    assert_memory_equal(now, surface.bytes, total(&surface));
    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (wrong[i] == object)
            continue;
        fetch("fetch_2d", wrong[i], &(struct place){0}, 1, result);
        assert_int_equal(result[0] | result[1] | result[2] | result[3], 0);
    }
    gives(CUDA_ERROR_INVALID_VALUE, cuSurfObjectDestroy(object));
    ok(cuArrayDestroy(surface.array));
}

/* With .trap, an access outside of the surface ends the kernel with an error. */
static void accesses_outside_trap(void **state)
{
    static const struct element real = {4, CU_AD_FORMAT_FLOAT, 1};
    static struct surface surface;
    struct spot outside = {11 * 4, 0, 0, 0};
    CUdeviceptr spots, data;
    CUcontext context, before;
    CUfunction function;
    CUmodule module;
    uint32_t n = 1;

    (void)state;
    if (!on_cuttle()) /* natively the error is sticky for the process */
        skip();
    ok(cuCtxGetCurrent(&before));
    ok(create_context(&context, 0));
    ok(cuModuleLoadData(&module, modules[1]));
    ok(cuModuleGetFunction(&function, module, "store_2d_4_trap"));
    create(&surface, &geometries[1], &real);
    ok(cuMemAlloc(&spots, sizeof outside));
    ok(cuMemAlloc(&data, BYTES_MAX));
    ok(cuMemcpyHtoD(spots, &outside, sizeof outside));
    ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&surface.object, &spots, &data, &n}, NULL));
    assert_int_not_equal(cuCtxSynchronize(), CUDA_SUCCESS);
    (void)cuCtxDestroy(context);
    ok(cuCtxSetCurrent(before));
}

static int set_up(void **state)
{
    if (textures_set_up(state))
        return -1;
    for (size_t i = 0; i < COUNT(modules); i++)
        if (cuModuleLoadData(&loaded[i], modules[i]) != CUDA_SUCCESS)
            return -1;
    return cuMemAlloc(&device_spots, N * sizeof(struct spot)) == CUDA_SUCCESS && cuMemAlloc(&device_data, N * BYTES_MAX) == CUDA_SUCCESS
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    for (size_t i = 0; i < COUNT(modules); i++)
        if (cuModuleUnload(loaded[i]) != CUDA_SUCCESS)
            return -1;
    return cuMemFree(device_spots) == CUDA_SUCCESS && cuMemFree(device_data) == CUDA_SUCCESS ? textures_tear_down(state) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_read_the_array),           cmocka_unit_test(stores_write_the_array),
        cmocka_unit_test(formatted_stores_convert),       cmocka_unit_test(reductions_add),
        cmocka_unit_test(textures_see_stores_and_copies), cmocka_unit_test(stale_handles_are_harmless),
        cmocka_unit_test(accesses_outside_trap),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
