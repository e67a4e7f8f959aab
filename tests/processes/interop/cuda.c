/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA half: a context, two kernels, imports. */
#include "interop.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

/* %r1: the thread; %rd1: its word of `data`; threads beyond `count` exit. %r4, %r5: multiplier and addend. */
#define OWN_WORD                                                                                                                           \
    "{\n"                                                                                                                                  \
    "    .reg .pred %p;\n"                                                                                                                 \
    "    .reg .b32 %r<9>;\n"                                                                                                               \
    "    .reg .b64 %rd<4>;\n"                                                                                                              \
    "    mov.u32 %r1, %ctaid.x;\n"                                                                                                         \
    "    mov.u32 %r2, %ntid.x;\n"                                                                                                          \
    "    mov.u32 %r3, %tid.x;\n"                                                                                                           \
    "    mad.lo.u32 %r1, %r1, %r2, %r3;\n"                                                                                                 \
    "    ld.param.u32 %r2, [count];\n"                                                                                                     \
    "    setp.ge.u32 %p, %r1, %r2;\n"                                                                                                      \
    "    @%p ret;\n"                                                                                                                       \
    "    ld.param.u64 %rd1, [data];\n"                                                                                                     \
    "    cvta.to.global.u64 %rd1, %rd1;\n"                                                                                                 \
    "    mul.wide.u32 %rd2, %r1, 4;\n"                                                                                                     \
    "    add.u64 %rd1, %rd1, %rd2;\n"                                                                                                      \
    "    ld.param.u32 %r4, [multiplier];\n"                                                                                                \
    "    ld.param.u32 %r5, [addend];\n"

static const char kernels[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry map(.param .u64 data, .param .u32 count, .param .u32 multiplier, .param .u32 addend,\n"
    "    .param .u32 step)\n" OWN_WORD "    ld.param.u32 %r6, [step];\n"
    "    ld.global.u32 %r7, [%rd1];\n"
    "    mad.lo.u32 %r7, %r7, %r4, %r5;\n"
    "    mad.lo.u32 %r7, %r1, %r6, %r7;\n"
    "    st.global.u32 [%rd1], %r7;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry count_wrong(.param .u64 data, .param .u32 count, .param .u32 multiplier, .param .u32 addend,\n"
    "    .param .u64 wrong)\n" OWN_WORD "    mad.lo.u32 %r6, %r1, %r4, %r5;\n"
    "    ld.global.u32 %r7, [%rd1];\n"
    "    setp.eq.u32 %p, %r6, %r7;\n"
    "    @%p ret;\n"
    "    ld.param.u64 %rd3, [wrong];\n"
    "    cvta.to.global.u64 %rd3, %rd3;\n"
    "    red.global.add.u32 [%rd3], 1;\n"
    "    ret;\n"
    "}\n";

void expect_code(CUresult expected, CUresult got, const char *call, const char *file, int line)
{
    const char *name = "?";

    if (got == expected)
        return;
    cuGetErrorName(got, &name);
    fprintf(stderr, "%s:%d: %s gave %s (%d), not %d\n", file, line, call, name, (int)got, (int)expected);
    exit(EXIT_FAILURE);
}

void expect_true(bool condition, const char *text, const char *file, int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, text);
    exit(EXIT_FAILURE);
}

static bool same_file(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino && one->st_rdev == other->st_rdev;
}

/* -1: of any file. */
static unsigned count_descriptors_of(int fd)
{
    DIR *folder = opendir("/proc/self/fd");
    struct stat wanted, file;
    struct dirent *entry;
    unsigned count = 0;

    expect(fd < 0 || fstat(fd, &wanted) == 0);
    while ((entry = readdir(folder)))
        count += fd < 0 || (fstat(atoi(entry->d_name), &file) == 0 && same_file(&file, &wanted));
    closedir(folder);
    return count;
}

unsigned count_descriptors(void)
{
    return count_descriptors_of(-1);
}

unsigned count_descriptors_like(int fd)
{
    return count_descriptors_of(fd);
}

void cuda_open(struct cuda *cuda)
{
    ok(cuInit(0));
    ok(cuDeviceGet(&cuda->device, 0));
    ok(cuDevicePrimaryCtxRetain(&cuda->context, cuda->device));
    ok(cuCtxSetCurrent(cuda->context));
    ok(cuModuleLoadData(&cuda->module, kernels));
    ok(cuModuleGetFunction(&cuda->map, cuda->module, "map"));
    ok(cuModuleGetFunction(&cuda->count_wrong, cuda->module, "count_wrong"));
}

void cuda_close(struct cuda *cuda)
{
    ok(cuModuleUnload(cuda->module));
    ok(cuDevicePrimaryCtxRelease(cuda->device));
}

void cuda_map(struct cuda *cuda, CUstream stream, CUdeviceptr data, struct app_map map)
{
    void *params[] = {&data, &map.count, &map.multiplier, &map.addend, &map.step};

    ok(cuLaunchKernel(cuda->map, (map.count + 63) / 64, 1, 1, 64, 1, 1, 0, stream, params, NULL));
}

void cuda_count_wrong_async(struct cuda *cuda, CUstream stream, CUdeviceptr data, unsigned count, unsigned multiplier, unsigned addend,
                            CUdeviceptr wrong)
{
    void *params[] = {&data, &count, &multiplier, &addend, &wrong};

    ok(cuLaunchKernel(cuda->count_wrong, (count + 63) / 64, 1, 1, 64, 1, 1, 0, stream, params, NULL));
}

unsigned cuda_count_wrong(struct cuda *cuda, CUdeviceptr data, unsigned count, unsigned multiplier, unsigned addend)
{
    CUdeviceptr wrong;
    unsigned result;

    ok(cuMemAlloc(&wrong, sizeof result));
    ok(cuMemsetD32(wrong, 0, 1));
    cuda_count_wrong_async(cuda, NULL, data, count, multiplier, addend, wrong);
    ok(cuMemcpyDtoH(&result, wrong, sizeof result));
    ok(cuMemFree(wrong));
    return result;
}

CUDA_EXTERNAL_MEMORY_HANDLE_DESC memory_handle(unsigned type, int fd, unsigned long long bytes)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;

    memset(&desc, 0, sizeof desc);
    desc.type = type;
    desc.handle.fd = fd;
    desc.size = bytes;
    return desc;
}

CUexternalMemory import_memory(struct app *app, const struct app_buffer *buffer)
{
    const bool dma_buf = buffer->kind == APP_DMA_BUF;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc =
        memory_handle(dma_buf ? CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD : CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                      app_buffer_export(app, buffer), buffer->memory_bytes);
    CUexternalMemory memory;

    desc.flags = buffer->kind == APP_DEDICATED ? CUDA_EXTERNAL_MEMORY_DEDICATED : 0;
    ok(cuImportExternalMemory(&memory, &desc));
    return memory;
}

CUdeviceptr map_buffer(CUexternalMemory memory, unsigned long long offset, unsigned long long bytes)
{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc;
    CUdeviceptr pointer;

    memset(&desc, 0, sizeof desc);
    desc.offset = offset;
    desc.size = bytes;
    ok(cuExternalMemoryGetMappedBuffer(&pointer, memory, &desc));
    return pointer;
}
