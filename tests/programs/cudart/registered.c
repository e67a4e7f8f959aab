/* SPDX-License-Identifier: Apache-2.0 */
/* registered LIBCUDART FATBIN: does by hand what the host code that nvcc writes does, so that it runs with the libcudart of any CUDA
 * version: registers the fat binary with a kernel and a variable, launches the kernel, checks the result. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N 1000

struct dim3 {
    unsigned x, y, z;
};

/* What nvcc hands over for a source file. */
struct wrapper {
    uint32_t magic, version;
    const void *fatbin, *unused;
};

static void **(*register_fatbin)(const void *wrapper);
static void (*register_end)(void **handle);
static void (*unregister)(void **handle);
static void (*register_function)(void **handle, const char *host, char *name, const char *device_name, int limit, void *tid, void *bid,
                                 void *block, void *grid, int *warp);
static void (*register_variable)(void **handle, char *host, char *name, const char *device_name, int is_extern, size_t size,
                                 int is_constant, int is_global);
static int (*cuda_malloc)(void **out, size_t size);
static int (*cuda_free)(void *pointer);
static int (*cuda_memcpy)(void *to, const void *from, size_t size, int kind);
static int (*cuda_memcpy_to_symbol)(const void *symbol, const void *from, size_t size, size_t offset, int kind);
static int (*cuda_launch)(const void *host, struct dim3 grid, struct dim3 block, void **args, size_t shared, void *stream);
static int (*cuda_synchronize)(void);
static const char *(*cuda_error)(int code);

static const struct {
    const char *name;
    void *where;
} functions[] = {
    {"__cudaRegisterFatBinary", &register_fatbin},
    {"__cudaRegisterFatBinaryEnd", &register_end},
    {"__cudaUnregisterFatBinary", &unregister},
    {"__cudaRegisterFunction", &register_function},
    {"__cudaRegisterVar", &register_variable},
    {"cudaMalloc", &cuda_malloc},
    {"cudaFree", &cuda_free},
    {"cudaMemcpy", &cuda_memcpy},
    {"cudaMemcpyToSymbol", &cuda_memcpy_to_symbol},
    {"cudaLaunchKernel", &cuda_launch},
    {"cudaDeviceSynchronize", &cuda_synchronize},
    {"cudaGetErrorString", &cuda_error},
};

/* Stand for the kernel and the variable in the host program. */
static char host_kernel, host_bias;

#define must(condition, ...)                                                                                                               \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            printf(__VA_ARGS__);                                                                                                           \
            putchar('\n');                                                                                                                 \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

static void ok(int code, const char *what)
{
    must(code == 0, "%s: error %d: %s", what, code, cuda_error(code));
}

static void load_runtime(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);

    must(library, "%s", dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        *(void **)functions[i].where = dlsym(library, functions[i].name);
        must(*(void **)functions[i].where, "%s has no %s", path, functions[i].name);
    }
}

static void *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size;
    void *bytes;

    must(file && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0, "cannot read %s", path);
    rewind(file);
    bytes = malloc((size_t)size);
    must(bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size, "cannot read %s", path);
    fclose(file);
    return bytes;
}

static void run(void)
{
    static float x[N], y[N];
    const struct dim3 grid = {8, 1, 1}, block = {128, 1, 1};
    void *device_x, *device_y;
    float a = 0.5f;
    int n = N, bias = 7;
    void *args[] = {&a, &device_x, &device_y, &n};

    for (int i = 0; i < N; i++) {
        x[i] = (float)(2 * i);
        y[i] = (float)(i * i % 1000);
    }
    ok(cuda_malloc(&device_x, sizeof x), "cudaMalloc");
    ok(cuda_malloc(&device_y, sizeof y), "cudaMalloc");
    ok(cuda_memcpy(device_x, x, sizeof x, 1), "cudaMemcpy");
    ok(cuda_memcpy(device_y, y, sizeof y, 1), "cudaMemcpy");
    ok(cuda_memcpy_to_symbol(&host_bias, &bias, sizeof bias, 0, 1), "cudaMemcpyToSymbol");
    ok(cuda_launch(&host_kernel, grid, block, args, 0, NULL), "cudaLaunchKernel");
    ok(cuda_synchronize(), "cudaDeviceSynchronize");
    ok(cuda_memcpy(y, device_y, sizeof y, 2), "cudaMemcpy");
    for (int i = 0; i < N; i++)
        must(y[i] == (float)(i * i % 1000 + i + 7), "y[%d] is %g", i, (double)y[i]);
    ok(cuda_free(device_x), "cudaFree");
    ok(cuda_free(device_y), "cudaFree");
}

int main(int argc, char **argv)
{
    struct wrapper wrapper = {.magic = 0x466243b1, .version = 1};
    char kernel_name[] = "saxpy", variable_name[] = "bias";
    void **handle, *fatbin;

    must(argc == 3, "usage: %s LIBCUDART FATBIN", argv[0]);
    load_runtime(argv[1]);
    wrapper.fatbin = fatbin = read_file(argv[2]);
    handle = register_fatbin(&wrapper);
    register_function(handle, &host_kernel, kernel_name, kernel_name, -1, NULL, NULL, NULL, NULL, NULL);
    register_variable(handle, &host_bias, variable_name, variable_name, 0, sizeof(int), 0, 0);
    register_end(handle);
    run();
    unregister(handle);
    free(fatbin);
    puts("ok");
    return 0;
}
