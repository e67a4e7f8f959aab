/* SPDX-License-Identifier: Apache-2.0 */
/* The manual's sentences on cuExternalMemoryGetMappedBuffer, beyond ordinary use, which memory_cases.c tests. */
#include "interop.h"

#include "../../api/which_driver.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define BYTES ((unsigned long long)256 * 1024)
#define WORDS (unsigned)(BYTES / 4)

static const char trap_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry stops() { trap; ret; }\n";

/* "CUDA_ERROR_NOT_INITIALIZED"; the only case that runs before cuInit. */
void not_initialized(void)
{
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC image;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC semaphore_handle;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer;
    CUexternalSemaphore semaphore;
    CUexternalMemory memory;
    CUmipmappedArray mipmap;
    CUdeviceptr pointer;

    memset(&image, 0, sizeof image);
    memset(&semaphore_handle, 0, sizeof semaphore_handle);
    memset(&handle, 0, sizeof handle);
    memset(&buffer, 0, sizeof buffer);
    gives(CUDA_ERROR_NOT_INITIALIZED, cuImportExternalMemory(&memory, &handle));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuExternalMemoryGetMappedBuffer(&pointer, NULL, &buffer));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuExternalMemoryGetMappedMipmappedArray(&mipmap, NULL, &image));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuDestroyExternalMemory(NULL));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuImportExternalSemaphore(&semaphore, &semaphore_handle));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuDestroyExternalSemaphore(NULL));
}

/* "offset in the memory object where the buffer's base address is": any offset that is a multiple of the kernel's words, and any size. */
static void map_oddly(struct app *app, struct cuda *cuda, enum app_memory_kind kind)
{
    static const unsigned long long offsets[] = {4, 100, 4096 + 12, 65536 - 4, 65536 + 4, BYTES - 404};
    struct app_buffer buffer;
    CUexternalMemory memory;

    app_buffer_create(app, BYTES, kind, &buffer);
    memory = import_memory(app, &buffer);
    app_run(app, &buffer, &buffer, &(struct app_map){WORDS, 0, 0, 1}); /* every word is its index */
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        CUdeviceptr pointer = map_buffer(memory, offsets[i], 404), start;
        size_t bytes;

        expect(cuda_count_wrong(cuda, pointer, 101, 1, (unsigned)(offsets[i] / 4)) == 0);
        ok(cuMemGetAddressRange(&start, &bytes, pointer + 200));
        if (on_cuttle())
            expect(start == pointer && bytes == 404);
        ok(cuMemFree(pointer));
    }
    ok(cuDestroyExternalMemory(memory));
    app_buffer_destroy(app, &buffer);
}

int odd_offsets(struct app *app, struct cuda *cuda)
{
    map_oddly(app, cuda, APP_SHARED);
    if (on_cuttle())
        map_oddly(app, cuda, APP_DEDICATED);
    return PASSED;
}

/* "It is recommended that applications map the combined range": two buffers of the application by one pointer. */
int combined_range(struct app *app, struct cuda *cuda)
{
    const unsigned long long half = BYTES / 2;
    const unsigned words = WORDS / 2;
    struct app_buffer whole, parts[2];
    CUexternalMemory memory;
    CUdeviceptr pointer;

    app_buffer_create(app, BYTES, APP_SHARED, &whole);
    memory = import_memory(app, &whole);
    pointer = map_buffer(memory, 0, BYTES);
    for (unsigned i = 0; i < 2; i++) {
        app_buffer_place(app, &whole, i * half, half, &parts[i]);
        app_run(app, &parts[i], &parts[i], &(struct app_map){words, 0, i * 77, i + 3});
    }
    for (unsigned i = 0; i < 2; i++) {
        expect(cuda_count_wrong(cuda, pointer + i * half, words, i + 3, i * 77) == 0);
        app_buffer_destroy(app, &parts[i]);
    }
    ok(cuMemFree(pointer));
    ok(cuDestroyExternalMemory(memory));
    app_buffer_destroy(app, &whole);
    return PASSED;
}

/* "must be freed using cuMemFree": only by that function, at the buffer's beginning, and once. */
int freed_once(struct app *app, struct cuda *cuda)
{
    struct app_buffer buffer;
    CUexternalMemory memory;
    CUdeviceptr pointer;

    (void)cuda;
    if (!on_cuttle())
        return LEFT_OUT;
    app_buffer_create(app, BYTES, APP_SHARED, &buffer);
    memory = import_memory(app, &buffer);
    pointer = map_buffer(memory, 64, BYTES - 64);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((void *)(uintptr_t)pointer));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister((void *)(uintptr_t)pointer));
    gives(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(pointer));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(pointer + 64));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(pointer - 64)); /* the import begins there */
    ok(cuMemFree(pointer));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(pointer));
    ok(cuDestroyExternalMemory(memory));
    app_buffer_destroy(app, &buffer);
    return PASSED;
}

/* A context with external memory in which a kernel has failed, and its destruction. */
static void break_context(struct app *app, struct cuda *cuda, const struct app_buffer *buffer)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle;
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc;
    CUdeviceptr pointer = 1;
    CUexternalMemory memory, second = NULL;
    CUfunction stops;
    CUcontext context;
    CUmodule module;
    CUresult broken;

    ok(cuCtxCreate(&context, NULL, 0, cuda->device));
    memory = import_memory(app, buffer);
    (void)map_buffer(memory, 0, BYTES);
    ok(cuModuleLoadData(&module, trap_ptx));
    ok(cuModuleGetFunction(&stops, module, "stops"));
    ok(cuLaunchKernel(stops, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    broken = cuCtxSynchronize();
    expect(broken != CUDA_SUCCESS);
    memset(&desc, 0, sizeof desc);
    desc.size = BYTES;
    gives(broken, cuExternalMemoryGetMappedBuffer(&pointer, memory, &desc));
    handle = memory_handle(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, app_buffer_export(app, buffer), buffer->memory_bytes);
    gives(broken, cuImportExternalMemory(&second, &handle));
    expect(pointer == 1 && !second && close(handle.handle.fd) == 0);
    ok(cuCtxDestroy(context));
    gives(CUDA_ERROR_INVALID_HANDLE, cuExternalMemoryGetMappedBuffer(&pointer, memory, &desc));
    gives(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalMemory(memory));
    ok(cuCtxSetCurrent(cuda->context));
}

/* "may also return error codes from previous, asynchronous launches": then nothing is imported or mapped, and the caller still owns the descriptor.
 * Earlier imports are freed with their context. */
int errors_of_launches(struct app *app, struct cuda *cuda)
{
    struct app_buffer buffer;
    unsigned descriptors;
    int exported;

    if (!on_cuttle()) /* then no call works in the process any more */
        return LEFT_OUT;
    app_buffer_create(app, BYTES, APP_SHARED, &buffer);
    exported = app_buffer_export(app, &buffer);
    descriptors = count_descriptors_like(exported); /* NVIDIA's Vulkan driver keeps another for each context that executed work */
    break_context(app, cuda, &buffer);
    expect(count_descriptors_like(exported) == descriptors);
    close(exported);
    app_buffer_destroy(app, &buffer);
    return PASSED;
}
