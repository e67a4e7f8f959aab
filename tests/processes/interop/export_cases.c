/* SPDX-License-Identifier: Apache-2.0 */
/* The reverse direction: Vulkan imports memory of cuMemCreate by the file descriptor of cuMemExportToShareableHandle. */
#include "interop.h"

#include <string.h>
#include <unistd.h>

#define WORDS 100000u
#define BYTES (WORDS * 4ull)
#define FILE_TYPE CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

struct exported {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr pointer;
    size_t bytes;
};

static bool exports(const struct cuda *cuda)
{
    int is = 0;

    ok(cuDeviceGetAttribute(&is, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, cuda->device));
    return is == 1;
}

static void map_it(const struct cuda *cuda, struct exported *out)
{
    CUmemAccessDesc access;

    memset(&access, 0, sizeof access);
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = cuda->device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ok(cuMemAddressReserve(&out->pointer, out->bytes, 0, 0, 0));
    ok(cuMemMap(out->pointer, out->bytes, 0, out->handle, 0));
    ok(cuMemSetAccess(out->pointer, out->bytes, &access, 1));
}

static struct exported make(const struct cuda *cuda)
{
    CUmemAllocationProp properties;
    struct exported exported;

    memset(&properties, 0, sizeof properties);
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = cuda->device;
    properties.requestedHandleTypes = FILE_TYPE;
    ok(cuMemGetAllocationGranularity(&exported.bytes, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    exported.bytes *= 2;
    ok(cuMemCreate(&exported.handle, exported.bytes, &properties, 0));
    map_it(cuda, &exported);
    return exported;
}

static void unmap_it(struct exported *exported)
{
    ok(cuMemUnmap(exported->pointer, exported->bytes));
    ok(cuMemAddressFree(exported->pointer, exported->bytes));
}

static struct app_buffer import_into(struct app *app, const struct exported *exported)
{
    struct app_buffer buffer;
    int fd = -1;

    ok(cuMemExportToShareableHandle(&fd, exported->handle, FILE_TYPE, 0));
    expect(app_buffer_import(app, fd, APP_SHARED, exported->bytes, BYTES, &buffer));
    return buffer;
}

static void expect_in_vulkan(struct app *app, const struct app_buffer *buffer, unsigned multiplier, unsigned addend)
{
    struct app_buffer host;

    app_buffer_create(app, BYTES, APP_HOST, &host);
    app_run(app, buffer, &host, &(struct app_map){WORDS, 1, 0, 0});
    for (unsigned i = 0; i < WORDS; i++)
        expect(host.words[i] == i * multiplier + addend);
    app_buffer_destroy(app, &host);
}

int exported_memory(struct app *app, struct cuda *cuda)
{
    struct exported exported;
    struct app_buffer buffer;

    if (!exports(cuda))
        return LEFT_OUT;
    exported = make(cuda);
    buffer = import_into(app, &exported);
    cuda_map(cuda, NULL, exported.pointer, (struct app_map){WORDS, 0, 5, 7}); /* 7 i + 5 */
    ok(cuCtxSynchronize());
    expect_in_vulkan(app, &buffer, 7, 5);
    app_run(app, &buffer, &buffer, &(struct app_map){WORDS, 2, 1, 1}); /* 15 i + 11 */
    expect(cuda_count_wrong(cuda, exported.pointer, WORDS, 15, 11) == 0);
    expect(cuda_count_wrong(cuda, exported.pointer, WORDS, 15, 10) == WORDS);
    app_buffer_destroy(app, &buffer);
    expect(cuda_count_wrong(cuda, exported.pointer, WORDS, 15, 11) == 0);
    unmap_it(&exported);
    ok(cuMemRelease(exported.handle));
    return PASSED;
}

/* "the memory lives until all references to it are released": memory that Vulkan imported remains after CUDA has released it. */
int exported_memory_stays(struct app *app, struct cuda *cuda)
{
    struct exported exported;
    struct app_buffer buffer;

    if (!exports(cuda))
        return LEFT_OUT;
    exported = make(cuda);
    cuda_map(cuda, NULL, exported.pointer, (struct app_map){WORDS, 0, 9, 2});
    ok(cuCtxSynchronize());
    buffer = import_into(app, &exported);
    unmap_it(&exported);
    ok(cuMemRelease(exported.handle));
    expect_in_vulkan(app, &buffer, 2, 9);
    app_buffer_destroy(app, &buffer);
    return PASSED;
}

/* The same memory in three ways: CUDA's own mapping, CUDA's import, and Vulkan's import. */
int exported_and_imported(struct app *app, struct cuda *cuda)
{
    struct exported exported, again;
    struct app_buffer buffer;
    int fd = -1;

    if (!exports(cuda))
        return LEFT_OUT;
    exported = make(cuda);
    again = exported;
    ok(cuMemExportToShareableHandle(&fd, exported.handle, FILE_TYPE, 0));
    ok(cuMemImportFromShareableHandle(&again.handle, (void *)(intptr_t)fd, FILE_TYPE));
    close(fd);
    map_it(cuda, &again);
    buffer = import_into(app, &exported);
    for (unsigned round = 1; round < 10; round++) {
        cuda_map(cuda, NULL, round % 2 ? again.pointer : exported.pointer, (struct app_map){WORDS, 0, round, 3});
        ok(cuCtxSynchronize());
        app_run(app, &buffer, &buffer, &(struct app_map){WORDS, 1, 1, 1}); /* 4 i + round + 1 */
        expect(cuda_count_wrong(cuda, round % 2 ? exported.pointer : again.pointer, WORDS, 4, round + 1) == 0);
    }
    app_buffer_destroy(app, &buffer);
    unmap_it(&again);
    unmap_it(&exported);
    ok(cuMemRelease(again.handle));
    ok(cuMemRelease(exported.handle));
    return PASSED;
}
