/* SPDX-License-Identifier: Apache-2.0 */
/* Vulkan imports memory of cuMemAlloc as the dma-buf of cuMemGetHandleForAddressRange; CUDA imports dma-bufs that neither API created. */
#include "interop.h"

#include "../../api/which_driver.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define ALL (4 * MIB)
#define WORDS 100000u
#define BYTES (WORDS * 4ull)

static bool exports(const struct cuda *cuda)
{
    int is = 0;

    ok(cuDeviceGetAttribute(&is, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, cuda->device));
    return is == 1;
}

static CUresult export_range(CUdeviceptr pointer, size_t bytes, int *out)
{
    return cuMemGetHandleForAddressRange(out, pointer, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
}

static struct app_buffer import_range(struct app *app, CUdeviceptr pointer, size_t bytes)
{
    struct app_buffer buffer;
    int fd = -1;

    ok(export_range(pointer, bytes, &fd));
    expect(app_buffer_import(app, fd, APP_DMA_BUF, bytes, BYTES, &buffer));
    return buffer;
}

int dma_buf_exported(struct app *app, struct cuda *cuda)
{
    CUdeviceptr memory;
    struct app_buffer buffer, host;

    if (!exports(cuda) || !app->has_dma_buf)
        return LEFT_OUT;
    ok(cuMemAlloc(&memory, ALL));
    buffer = import_range(app, memory, ALL);
    cuda_map(cuda, NULL, memory, (struct app_map){WORDS, 0, 5, 7}); /* 7 i + 5 */
    ok(cuCtxSynchronize());
    app_run(app, &buffer, &buffer, &(struct app_map){WORDS, 2, 1, 1}); /* 15 i + 11 */
    expect(cuda_count_wrong(cuda, memory, WORDS, 15, 11) == 0);
    expect(cuda_count_wrong(cuda, memory, WORDS, 15, 10) == WORDS);
    app_buffer_create(app, BYTES, APP_HOST, &host);
    app_run(app, &buffer, &host, &(struct app_map){WORDS, 1, 0, 0});
    for (unsigned i = 0; i < WORDS; i++)
        expect(host.words[i] == i * 15 + 11);
    app_buffer_destroy(app, &host);
    app_buffer_destroy(app, &buffer);
    ok(cuMemFree(memory));
    return PASSED;
}

/* Freed memory that is still imported elsewhere is not allocated again. */
int dma_buf_stays(struct app *app, struct cuda *cuda)
{
    CUdeviceptr memory, next;
    struct app_buffer buffer, host;

    if (!exports(cuda) || !app->has_dma_buf)
        return LEFT_OUT;
    ok(cuMemAlloc(&memory, ALL));
    cuda_map(cuda, NULL, memory, (struct app_map){WORDS, 0, 3, 9});
    buffer = import_range(app, memory, ALL);
    ok(cuMemFree(memory));
    ok(cuMemAlloc(&next, ALL));
    cuda_map(cuda, NULL, next, (struct app_map){WORDS, 0, 1, 0});
    ok(cuCtxSynchronize());
    app_buffer_create(app, BYTES, APP_HOST, &host);
    app_run(app, &buffer, &host, &(struct app_map){WORDS, 1, 0, 0});
    for (unsigned i = 0; i < WORDS; i++)
        expect(host.words[i] == i * 9 + 3);
    app_buffer_destroy(app, &host);
    app_buffer_destroy(app, &buffer);
    ok(cuMemFree(next));
    return PASSED;
}

/* Creates a dma-buf of the file's pages, if Linux supports that (udmabuf); otherwise uses the file itself, which lavapipe maps in the same way. */
static int dma_buf_of_file(int file)
{
    struct udmabuf_create create = {.memfd = (uint32_t)file, .flags = UDMABUF_FLAGS_CLOEXEC, .size = ALL};
    int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd = -1;

    expect(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    if (device >= 0) {
        fd = ioctl(device, UDMABUF_CREATE, &create);
        close(device);
    }
    return fd >= 0 ? fd : fcntl(file, F_DUPFD_CLOEXEC, 0);
}

/* Host pages as a dma-buf, for devices that can import them: with every address rule kernels and the host see each other's stores. */
int dma_buf_of_pages(struct app *app, struct cuda *cuda)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
    VkPhysicalDeviceProperties properties;
    CUexternalMemory memory;
    CUdeviceptr pointer;
    uint32_t *words;
    int file;

    vkGetPhysicalDeviceProperties(app->physical, &properties);
    if (properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU)
        return LEFT_OUT;
    expect((file = memfd_create("pages", MFD_CLOEXEC | MFD_ALLOW_SEALING)) >= 0 && ftruncate(file, ALL) == 0);
    expect((words = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)) != MAP_FAILED);
    desc = memory_handle(CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD, dma_buf_of_file(file), ALL);
    ok(cuImportExternalMemory(&memory, &desc));
    pointer = map_buffer(memory, 0, BYTES);
    for (unsigned i = 0; i < WORDS; i++)
        words[i] = i * 6 + 1;
    expect(cuda_count_wrong(cuda, pointer, WORDS, 6, 1) == 0);
    cuda_map(cuda, NULL, pointer, (struct app_map){WORDS, 3, 2, 1});
    ok(cuCtxSynchronize());
    for (unsigned i = 0; i < WORDS; i++)
        expect(words[i] == i * 19 + 5);
    ok(cuDestroyExternalMemory(memory));
    ok(cuMemFree(pointer));
    expect(munmap(words, ALL) == 0 && close(file) == 0);
    return PASSED;
}

/* CUDA itself can import two dma-bufs of the same memory. */
static void import_into_cuda(struct cuda *cuda, CUdeviceptr memory)
{
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC image = {
        .arrayDesc = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1}, .numLevels = 1};
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
    CUexternalMemory imported;
    CUmipmappedArray mipmap;
    CUdeviceptr pointer;
    int fd = -1;

    ok(export_range(memory, ALL, &fd));
    desc = memory_handle(CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD, fd, ALL);
    desc.flags = CUDA_EXTERNAL_MEMORY_DEDICATED; /* the manual: zero for dma-bufs */
    gives(CUDA_ERROR_INVALID_VALUE, cuImportExternalMemory(&imported, &desc));
    desc.flags = 0;
    ok(cuImportExternalMemory(&imported, &desc));
    pointer = map_buffer(imported, 0, BYTES);
    cuda_map(cuda, NULL, memory, (struct app_map){WORDS, 0, 8, 6});
    expect(cuda_count_wrong(cuda, pointer, WORDS, 6, 8) == 0);
    gives(CUDA_ERROR_NOT_SUPPORTED, export_range(pointer, 65536, &fd)); /* only its creator can export it */
    gives(CUDA_ERROR_NOT_SUPPORTED, cuExternalMemoryGetMappedMipmappedArray(&mipmap, imported, &image));
    ok(cuMemFree(pointer));
    ok(cuDestroyExternalMemory(imported));
}

/* If the native driver exports dma-bufs, it returns the same errors; but its dma-bufs can begin at any address. */
int dma_buf_errors(struct app *app, struct cuda *cuda)
{
    const CUmemRangeHandleType type = CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
    const bool here = exports(cuda);
    CUdeviceptr memory, small[2];
    int fd = -77;
    void *host;

    (void)app;
    ok(cuMemAlloc(&memory, ALL));
    ok(cuMemAllocHost(&host, MIB));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemGetHandleForAddressRange(NULL, memory, ALL, type, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemGetHandleForAddressRange(&fd, memory, ALL, (CUmemRangeHandleType)2, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemGetHandleForAddressRange(&fd, memory, ALL, type, 2));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuMemGetHandleForAddressRange(&fd, memory, ALL, type, CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE));
    gives(CUDA_ERROR_INVALID_VALUE, export_range(memory + 1, 4096, &fd));
    gives(CUDA_ERROR_INVALID_VALUE, export_range(memory, 4097, &fd));
    gives(CUDA_ERROR_INVALID_VALUE, export_range(memory, 0, &fd));
    gives(CUDA_ERROR_INVALID_VALUE, export_range(memory, 2 * ALL, &fd));
    gives(CUDA_ERROR_INVALID_VALUE, export_range(memory + 4096, ALL, &fd));
    gives(CUDA_ERROR_INVALID_VALUE, export_range(0x1000, 4096, &fd));
    gives(CUDA_ERROR_INVALID_VALUE, export_range((CUdeviceptr)(uintptr_t)host, MIB, &fd));
    if (!here)
        gives(CUDA_ERROR_NOT_SUPPORTED, export_range(memory, ALL, &fd));
    if (on_cuttle()) /* NVIDIA's driver changes it */
        expect(fd == -77);
    if (on_cuttle() && here) {
        gives(CUDA_ERROR_NOT_SUPPORTED, export_range(memory + 65536, 65536, &fd));
        ok(cuMemAlloc(&small[0], 65536)); /* parts of one chunk: one of them is not at its beginning */
        ok(cuMemAlloc(&small[1], 65536));
        gives(CUDA_ERROR_NOT_SUPPORTED, export_range(small[0] > small[1] ? small[0] : small[1], 65536, &fd));
        ok(cuMemFree(small[0]));
        ok(cuMemFree(small[1]));
        import_into_cuda(cuda, memory);
    }
    ok(cuMemFree(memory));
    ok(cuMemFreeHost(host));
    gives(CUDA_ERROR_INVALID_VALUE, export_range(memory, ALL, &fd));
    return PASSED;
}
