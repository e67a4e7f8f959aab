/* SPDX-License-Identifier: Apache-2.0 */
/* Vulkan and CUDA share memory in one process: the cases of memory, and the program.
 *
 *   interop_test [CASE]       all cases, or one; "facts" prints the results for invalid arguments
 *   interop_test child FD     the other process of two_processes */
#include "interop.h"

#include "../../api/which_driver.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORDS 10000u /* neither a power of two nor a multiple of the work-group's size */
#define BYTES (WORDS * 4ull)

/* A buffer of the application and its pointer in CUDA. */
struct shared {
    struct app_buffer buffer;
    CUexternalMemory memory;
    CUdeviceptr pointer;
};

static struct shared share(struct app *app, enum app_memory_kind kind)
{
    struct shared shared;

    app_buffer_create(app, BYTES, kind, &shared.buffer);
    shared.memory = import_memory(app, &shared.buffer);
    shared.pointer = map_buffer(shared.memory, 0, BYTES);
    return shared;
}

static void unshare(struct app *app, struct shared *shared)
{
    ok(cuMemFree(shared->pointer));
    ok(cuDestroyExternalMemory(shared->memory));
    app_buffer_destroy(app, &shared->buffer);
}

/* Reads a buffer with Vulkan: the shader copies it to host memory. */
static void expect_in_vulkan(struct app *app, const struct app_buffer *buffer, unsigned count, unsigned multiplier, unsigned addend)
{
    struct app_buffer host;

    app_buffer_create(app, count * 4ull, APP_HOST, &host);
    app_run(app, buffer, &host, &(struct app_map){count, 1, 0, 0});
    for (unsigned i = 0; i < count; i++)
        expect(host.words[i] == i * multiplier + addend);
    app_buffer_destroy(app, &host);
}

/* ---- cases ---- */

static int same_device(struct app *app, struct cuda *cuda)
{
    char luid[8];
    unsigned mask;
    CUresult r = cuDeviceGetLuid(luid, &mask, cuda->device);

    /* The UUID was found when the application opened its device. */
    if (app->id.deviceLUIDValid && r == CUDA_SUCCESS) {
        expect(!memcmp(luid, app->id.deviceLUID, 8));
        expect(mask == app->id.deviceNodeMask);
    }
    if (on_cuttle())
        expect(app->id.deviceLUIDValid == (r == CUDA_SUCCESS));
    return PASSED;
}

static void both_ways(struct app *app, struct cuda *cuda, enum app_memory_kind kind)
{
    struct shared shared = share(app, kind);

    app_run(app, &shared.buffer, &shared.buffer, &(struct app_map){WORDS, 0, 17, 3}); /* 3 i + 17 */
    expect(cuda_count_wrong(cuda, shared.pointer, WORDS, 3, 17) == 0);
    expect(cuda_count_wrong(cuda, shared.pointer, WORDS, 3, 18) == WORDS);
    cuda_map(cuda, NULL, shared.pointer, (struct app_map){WORDS, 5, 1, 1}); /* 16 i + 86 */
    ok(cuCtxSynchronize());
    expect_in_vulkan(app, &shared.buffer, WORDS, 16, 86);
    unshare(app, &shared);
}

/* "Maps a buffer onto an imported memory object and returns a device pointer in devPtr." */
static int shared_buffer(struct app *app, struct cuda *cuda)
{
    both_ways(app, cuda, APP_SHARED);
    return PASSED;
}

static int dedicated(struct app *app, struct cuda *cuda)
{
    both_ways(app, cuda, APP_DEDICATED);
    return PASSED;
}

/* NVIDIA's driver imports them on embedded systems only. */
static int dma_buf(struct app *app, struct cuda *cuda)
{
    if (!app->has_dma_buf || !on_cuttle())
        return LEFT_OUT;
    both_ways(app, cuda, APP_DMA_BUF);
    return PASSED;
}

/* A mapped buffer is device memory like any other. */
static int whole_api(struct app *app, struct cuda *cuda)
{
    struct shared shared = share(app, APP_SHARED);
    static unsigned words[WORDS];
    CUdeviceptr start, copy;
    CUcontext context;
    unsigned type;
    size_t bytes;

    ok(cuMemGetAddressRange(&start, &bytes, shared.pointer + 400));
    expect(start == shared.pointer && bytes == BYTES);
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, shared.pointer));
    expect(type == CU_MEMORYTYPE_DEVICE);
    ok(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, shared.pointer));
    expect(context == cuda->context);

    for (unsigned i = 0; i < WORDS; i++)
        words[i] = i * 9 + 4;
    ok(cuMemcpyHtoD(shared.pointer, words, BYTES));
    expect_in_vulkan(app, &shared.buffer, WORDS, 9, 4);
    ok(cuMemAlloc(&copy, BYTES));
    ok(cuMemcpyDtoD(copy, shared.pointer, BYTES));
    expect(cuda_count_wrong(cuda, copy, WORDS, 9, 4) == 0);
    ok(cuMemsetD32(shared.pointer, 12345, WORDS));
    ok(cuCtxSynchronize());
    expect_in_vulkan(app, &shared.buffer, WORDS, 0, 12345);
    ok(cuMemcpyDtoH(words, shared.pointer, BYTES));
    expect(words[0] == 12345 && words[WORDS - 1] == 12345);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(words, shared.pointer, BYTES + 4));
    ok(cuMemFree(copy));
    unshare(app, &shared);
    return PASSED;
}

/* "The properties of the buffer being mapped must be described in bufferDesc": its offset "in the memory object" and its size. Two buffers
 * in one memory object, mapped separately. */
static int offsets(struct app *app, struct cuda *cuda)
{
    const unsigned long long second = 256 * 1024, bytes = 64 * 1024;
    const unsigned words = bytes / 4;
    struct app_buffer whole, parts[2];
    CUexternalMemory memory;
    CUdeviceptr pointers[2];

    app_buffer_create(app, second + bytes, APP_SHARED, &whole);
    app_buffer_place(app, &whole, 0, bytes, &parts[0]);
    app_buffer_place(app, &whole, second, bytes, &parts[1]);
    memory = import_memory(app, &whole);
    for (int i = 0; i < 2; i++)
        pointers[i] = map_buffer(memory, i ? second : 0, bytes);
    for (unsigned i = 0; i < 2; i++)
        app_run(app, &parts[i], &parts[i], &(struct app_map){words, 0, i * 1000, i + 2});
    for (unsigned i = 0; i < 2; i++)
        expect(cuda_count_wrong(cuda, pointers[i], words, i + 2, i * 1000) == 0);
    ok(cuMemFree(pointers[0])); /* the other remains valid */
    cuda_map(cuda, NULL, pointers[1], (struct app_map){words, 2, 0, 0});
    ok(cuCtxSynchronize());
    expect_in_vulkan(app, &parts[1], words, 6, 2000);
    expect_in_vulkan(app, &parts[0], words, 2, 0);
    ok(cuMemFree(pointers[1]));
    ok(cuDestroyExternalMemory(memory));
    for (int i = 0; i < 2; i++)
        app_buffer_destroy(app, &parts[i]);
    app_buffer_destroy(app, &whole);
    return PASSED;
}

/* "Mapping two buffers whose ranges overlap may or may not result in the same virtual address being returned for the overlapped portion":
 * the same bytes by two pointers. "all accesses to that region from the GPU are volatile" is the application's responsibility; a launch
 * always sees the stores of an earlier one. */
static int overlapping(struct app *app, struct cuda *cuda)
{
    const unsigned long long half = 64 * 1024;
    const unsigned words = half / 4;
    struct app_buffer buffer;
    CUexternalMemory memory;
    CUdeviceptr low, high, again;

    app_buffer_create(app, 3 * half, APP_SHARED, &buffer);
    memory = import_memory(app, &buffer);
    low = map_buffer(memory, 0, 2 * half);
    high = map_buffer(memory, half, 2 * half);
    again = map_buffer(memory, half, 2 * half);
    cuda_map(cuda, NULL, low, (struct app_map){2 * words, 0, 0, 1});
    ok(cuCtxSynchronize());
    expect(cuda_count_wrong(cuda, high, words, 1, words) == 0);
    cuda_map(cuda, NULL, high, (struct app_map){2 * words, 0, 7, 2});
    ok(cuCtxSynchronize());
    expect(cuda_count_wrong(cuda, low, words, 1, 0) == 0);
    expect(cuda_count_wrong(cuda, low + half, words, 2, 7) == 0);
    expect(cuda_count_wrong(cuda, again, 2 * words, 2, 7) == 0);
    ok(cuMemFree(high));
    expect(cuda_count_wrong(cuda, low + half, words, 2, 7) == 0);
    ok(cuMemFree(low));
    ok(cuMemFree(again));
    ok(cuDestroyExternalMemory(memory));
    app_buffer_destroy(app, &buffer);
    return PASSED;
}

/* The memory object and the application's memory are destroyed while a buffer is mapped. */
static int destroy_order(struct app *app, struct cuda *cuda)
{
    struct shared shared = share(app, APP_SHARED);
    CUdeviceptr second = map_buffer(shared.memory, 0, BYTES);

    app_run(app, &shared.buffer, &shared.buffer, &(struct app_map){WORDS, 0, 1, 1});
    ok(cuDestroyExternalMemory(shared.memory));
    app_buffer_destroy(app, &shared.buffer);
    if (on_cuttle()) { /* the manual requires that they are not used any more; with Cuttle they remain valid */
        expect(cuda_count_wrong(cuda, shared.pointer, WORDS, 1, 1) == 0);
        expect(cuda_count_wrong(cuda, second, WORDS, 1, 1) == 0);
    }
    ok(cuMemFree(shared.pointer));
    ok(cuMemFree(second));
    return PASSED;
}

/* The driver owns the descriptor on success, and only then; after the memory is freed, no descriptor leaks. */
static int ownership(struct app *app, struct cuda *cuda)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
    unsigned before = count_descriptors();
    struct app_buffer buffer;
    CUexternalMemory memory;
    CUdeviceptr pointer;

    (void)cuda;
    app_buffer_create(app, BYTES, APP_SHARED, &buffer);
    desc = memory_handle(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, app_buffer_export(app, &buffer), 0);
    gives(CUDA_ERROR_INVALID_VALUE, cuImportExternalMemory(&memory, &desc));
    expect(fcntl(desc.handle.fd, F_GETFD) >= 0);
    desc.size = buffer.memory_bytes;
    ok(cuImportExternalMemory(&memory, &desc));
    pointer = map_buffer(memory, 0, BYTES);
    ok(cuDestroyExternalMemory(memory));
    ok(cuMemFree(pointer));
    app_buffer_destroy(app, &buffer);
    if (on_cuttle())
        expect(count_descriptors() == before);
    return PASSED;
}

static CUresult import_as(unsigned type, unsigned flags)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = memory_handle(type, -1, BYTES);
    CUexternalMemory memory;

    desc.flags = flags;
    return cuImportExternalMemory(&memory, &desc);
}

/* As on NVIDIA's driver. */
static void bad_types(void)
{
    gives(CUDA_ERROR_INVALID_VALUE, import_as(0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, import_as(10, 0));
    gives(CUDA_ERROR_INVALID_VALUE, import_as(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, 2));
    for (unsigned type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32; type <= CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT; type++)
        gives(CUDA_ERROR_NOT_SUPPORTED, import_as(type, CUDA_EXTERNAL_MEMORY_DEDICATED));
    gives(CUDA_ERROR_NOT_SUPPORTED, import_as(CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF, 0));
}

static void bad_imports(void)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = memory_handle(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, -1, BYTES);
    CUexternalMemory memory;
    int pipe_ends[2], file;

    gives(CUDA_ERROR_INVALID_VALUE, cuImportExternalMemory(&memory, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuImportExternalMemory(NULL, &desc));
    gives(CUDA_ERROR_OPERATING_SYSTEM, import_as(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, 0));
    expect(pipe(pipe_ends) == 0);
    desc.handle.fd = pipe_ends[0];
    gives(CUDA_ERROR_OPERATING_SYSTEM, cuImportExternalMemory(&memory, &desc));
    expect((file = memfd_create("zeros", MFD_CLOEXEC)) >= 0 && ftruncate(file, 1 << 20) == 0);
    desc.handle.fd = file;
    gives(CUDA_ERROR_OPERATING_SYSTEM, cuImportExternalMemory(&memory, &desc));
    expect(!close(pipe_ends[0]) && !close(pipe_ends[1]) && !close(file)); /* the program still owns them */
}

static CUresult map_as(CUexternalMemory memory, unsigned long long offset, unsigned long long size, unsigned flags)
{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc;
    CUdeviceptr pointer;

    memset(&desc, 0, sizeof desc);
    desc.offset = offset;
    desc.size = size;
    desc.flags = flags;
    return cuExternalMemoryGetMappedBuffer(&pointer, memory, &desc);
}

/* "flags must be zero"; "The offset and size have to be suitably aligned to match the requirements of the external API", of which Vulkan
 * has none for what CUDA maps (odd_offsets), but they have to be in the memory. */
static int errors(struct app *app, struct cuda *cuda)
{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc;
    struct shared shared = share(app, APP_SHARED);
    const unsigned long long all = shared.buffer.memory_bytes;
    CUdeviceptr pointer;

    (void)cuda;
    bad_types();
    if (on_cuttle())
        bad_imports();
    memset(&desc, 0, sizeof desc);
    desc.size = BYTES;
    gives(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedBuffer(NULL, shared.memory, &desc));
    gives(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedBuffer(&pointer, shared.memory, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, map_as(shared.memory, 0, BYTES, 1));
    gives(CUDA_ERROR_INVALID_VALUE, map_as(shared.memory, 0, all + 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, map_as(shared.memory, all, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, map_as(shared.memory, 0, 0, 0));
    if (on_cuttle()) /* NVIDIA's driver reserves the addresses first */
        gives(CUDA_ERROR_INVALID_VALUE, map_as(shared.memory, 4096, UINT64_MAX, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(shared.pointer + 4));
    if (on_cuttle()) {
        gives(CUDA_ERROR_INVALID_HANDLE, map_as(NULL, 0, BYTES, 0));
        gives(CUDA_ERROR_INVALID_HANDLE, map_as((CUexternalMemory)cuda->module, 0, BYTES, 0));
        gives(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalMemory(NULL));
    }
    unshare(app, &shared);
    if (on_cuttle()) { /* native drivers crash on destroyed handles */
        gives(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalMemory(shared.memory));
        gives(CUDA_ERROR_INVALID_HANDLE, map_as(shared.memory, 0, BYTES, 0));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(shared.pointer));
    }
    return PASSED;
}

/* Prints this driver's results for invalid arguments, for comparison; each call could crash, so results are printed one by one. */
static int facts(struct app *app, struct cuda *cuda)
{
    (void)app;
    (void)cuda;
    for (unsigned type = 0; type <= 10; type++) {
        printf("import of type %u: %d\n", type, (int)import_as(type, type >= 5 && type <= 7 ? CUDA_EXTERNAL_MEMORY_DEDICATED : 0));
        fflush(stdout);
    }
    printf("import with flags 2: %d\n", (int)import_as(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, 2));
    semaphore_facts();
    return PASSED;
}

/* ---- the program ---- */

static const struct {
    const char *name;
    interop_case *run;
    bool asked_for_only;
} cases[] = {
    {"same_device", same_device, false},
    {"shared_buffer", shared_buffer, false},
    {"dedicated", dedicated, false},
    {"dma_buf", dma_buf, false},
    {"whole_api", whole_api, false},
    {"offsets", offsets, false},
    {"overlapping", overlapping, false},
    {"odd_offsets", odd_offsets, false},
    {"combined_range", combined_range, false},
    {"freed_once", freed_once, false},
    {"errors_of_launches", errors_of_launches, false},
    {"destroy_order", destroy_order, false},
    {"ownership", ownership, false},
    {"errors", errors, false},
    {"images", images, false},
    {"image_order", image_order, false},
    {"image_kernels", image_kernels, false},
    {"image_errors", image_errors, false},
    {"exported_memory", exported_memory, false},
    {"exported_memory_stays", exported_memory_stays, false},
    {"exported_and_imported", exported_and_imported, false},
    {"dma_buf_of_pages", dma_buf_of_pages, false},
    {"dma_buf_exported", dma_buf_exported, false},
    {"dma_buf_stays", dma_buf_stays, false},
    {"dma_buf_errors", dma_buf_errors, false},
    {"ping_pong_host", ping_pong_host, false},
    {"ping_pong_timeline", ping_pong_timeline, false},
    {"ping_pong_binary", ping_pong_binary, false},
    {"semaphore_arrays", semaphore_arrays, false},
    {"semaphore_errors", semaphore_errors, false},
    {"semaphore_ownership", semaphore_ownership, false},
    {"facts", facts, true},
};

static void open_both(struct app *app, struct cuda *cuda)
{
    CUuuid uuid;

    cuda_open(cuda);
    ok(cuDeviceGetUuid(&uuid, cuda->device));
    app_open(app, (const uint8_t *)uuid.bytes);
}

static void report(const char *name, int result)
{
    printf("%-20s %s\n", name, result == LEFT_OUT ? "left out: the device has none" : "passed");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : NULL;
    struct cuda cuda;
    struct app app;
    int ran = 0;

    if (wanted && !strcmp(wanted, "child") && argc > 2) {
        cuda_open(&cuda);
        return child_process(atoi(argv[2]), &cuda);
    }
    if (wanted && !strcmp(wanted, "two_processes")) {
        cuda_open(&cuda);
        return two_processes(&cuda, "/proc/self/exe");
    }
    not_initialized();
    open_both(&app, &cuda);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (wanted ? strcmp(wanted, cases[i].name) : cases[i].asked_for_only)
            continue;
        report(cases[i].name, cases[i].run(&app, &cuda));
        ran++;
    }
    app_close(&app);
    cuda_close(&cuda);
    return ran ? EXIT_SUCCESS : EXIT_FAILURE;
}
