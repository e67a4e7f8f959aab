/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of our own. The queues of a backend fill memory in aligned 32-bit words; cuMemset* may ask for any element at its own
 * alignment, and for rows at a pitch. */
#include "builtin.h"

#include "device.h"
#include "jit.h"
#include "launch.h"
#include "log.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "builtin"
#define CT_BLOCK 256
#define CT_MAX_BLOCKS_IN_ROW 4096u /* then threads take several elements each */

/* clang-format off */
/* Thread (x, y) of the grid writes elements x, x + threads in a row, .. of rows y, y + blocks in a column, .. */
#define MEMSET_KERNEL(bits, log2_bytes)                                  \
    ".visible .entry memset" #bits "(.param .u64 address, .param .u64 pitch, .param .u64 width, .param .u64 height, .param .u32 value)\n" \
    "{\n"                                                                \
    "    .reg .pred %p<3>;\n"                                            \
    "    .reg .b16 %h;\n"                                                \
    "    .reg .b32 %r<6>;\n"                                             \
    "    .reg .b64 %d<14>;\n"                                            \
    "    ld.param.u64 %d1, [address];\n"                                 \
    "    ld.param.u64 %d2, [pitch];\n"                                   \
    "    ld.param.u64 %d3, [width];\n"                                   \
    "    ld.param.u64 %d4, [height];\n"                                  \
    "    ld.param.u32 %r1, [value];\n"                                   \
    "    cvt.u16.u32 %h, %r1;\n"                                         \
    "    mov.u32 %r2, %ctaid.x;\n"                                       \
    "    mov.u32 %r3, %ntid.x;\n"                                        \
    "    mov.u32 %r4, %tid.x;\n"                                         \
    "    mov.u32 %r5, %nctaid.x;\n"                                      \
    "    cvt.u64.u32 %d5, %r4;\n"                                        \
    "    mul.wide.u32 %d6, %r2, %r3;\n"                                  \
    "    add.u64 %d5, %d5, %d6;\n" /* first element */                   \
    "    mul.wide.u32 %d7, %r3, %r5;\n" /* threads in a row */           \
    "    mov.u32 %r2, %ctaid.y;\n"                                       \
    "    cvt.u64.u32 %d8, %r2;\n" /* row */                              \
    "    mov.u32 %r3, %nctaid.y;\n"                                      \
    "    cvt.u64.u32 %d9, %r3;\n"                                        \
    "next_row:\n"                                                        \
    "    setp.ge.u64 %p1, %d8, %d4;\n"                                   \
    "    @%p1 bra done;\n"                                               \
    "    mul.lo.u64 %d10, %d8, %d2;\n"                                   \
    "    add.u64 %d10, %d10, %d1;\n"                                     \
    "    mov.u64 %d11, %d5;\n"                                           \
    "next_element:\n"                                                    \
    "    setp.ge.u64 %p2, %d11, %d3;\n"                                  \
    "    @%p2 bra row_done;\n"                                           \
    "    shl.b64 %d12, %d11, " #log2_bytes ";\n"                         \
    "    add.u64 %d12, %d12, %d10;\n"                                    \
    "    st.global.u" #bits " [%d12], " MEMSET_VALUE_##bits ";\n"        \
    "    add.u64 %d11, %d11, %d7;\n"                                     \
    "    bra next_element;\n"                                            \
    "row_done:\n"                                                        \
    "    add.u64 %d8, %d8, %d9;\n"                                       \
    "    bra next_row;\n"                                                \
    "done:\n"                                                            \
    "    ret;\n"                                                         \
    "}\n"
#define MEMSET_VALUE_8 "%h"
#define MEMSET_VALUE_16 "%h"
#define MEMSET_VALUE_32 "%r1"

static const char source[] = ".version 6.0\n"
                             ".target sm_50\n"
                             ".address_size 64\n" MEMSET_KERNEL(8, 0) MEMSET_KERNEL(16, 1) MEMSET_KERNEL(32, 2);

/* clang-format on */

/* In the order of the source. */
enum { CT_MEMSET8, CT_MEMSET16, CT_MEMSET32, CT_N_BUILTINS };

struct memset_params {
    uint64_t address, pitch, width, height;
    uint32_t value;
};

struct ct_builtins {
    const struct ct_backend *backend;
    struct {
        struct ct_kernel_image *image;
        struct ptx2spv_kernel_info info;
    } kernels[CT_N_BUILTINS];
};

void ct_builtins_destroy(struct ct_builtins *builtins)
{
    if (!builtins)
        return;
    for (int i = 0; i < CT_N_BUILTINS; i++)
        builtins->backend->kernel_destroy(builtins->kernels[i].image);
    free(builtins);
}

static CUresult compile_one(struct ct_context *context, const struct ptx2spv_module *ptx, unsigned index, struct ct_builtins *builtins)
{
    const struct ptx2spv_options options = ct_jit_compiler_options(NULL);
    const char *name = ptx2spv_module_kernel(ptx, index)->name;
    struct ptx2spv_kernel kernel;
    enum ptx2spv_status status = ptx2spv_kernel_compile(ptx, index, &context->device->info.target, &options, &kernel);
    CUresult r;

    if (status != PTX2SPV_OK)
        return ct_fail(ct_jit_result(status), "our own kernel %s does not compile: %s", name, ptx2spv_status_string(status));
    r = context->backend->kernel_create(context->backend_device, name, &kernel, &builtins->kernels[index].image);
    builtins->kernels[index].info = kernel.info;
    ptx2spv_kernel_finish(&kernel);
    return r;
}

static CUresult compile_all(struct ct_context *context, struct ct_builtins **out)
{
    const struct ptx2spv_options options = ct_jit_compiler_options(NULL);
    struct ct_builtins *builtins = calloc(1, sizeof *builtins);
    struct ptx2spv_module *ptx;
    enum ptx2spv_status status;
    CUresult r = CUDA_SUCCESS;

    if (!builtins)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "our own kernels");
    builtins->backend = context->backend;
    status = ptx2spv_module_create(source, sizeof source - 1, &options, &ptx);
    if (status != PTX2SPV_OK) {
        free(builtins);
        return ct_fail(ct_jit_result(status), "our own kernels are not accepted: %s", ptx2spv_status_string(status));
    }
    for (unsigned i = 0; i < CT_N_BUILTINS && r == CUDA_SUCCESS; i++)
        r = compile_one(context, ptx, i, builtins);
    ptx2spv_module_destroy(ptx);
    if (r == CUDA_SUCCESS)
        *out = builtins;
    else
        ct_builtins_destroy(builtins);
    return r;
}

CUresult ct_builtin_prepare(struct ct_context *context)
{
    struct ct_device *device = context->device;
    struct ct_builtins *builtins, *none = NULL;
    CUresult r;

    if (atomic_load_explicit(&device->builtins, memory_order_acquire)) /* pairs with the exchange below */
        return CUDA_SUCCESS;
    r = compile_all(context, &builtins);
    if (r != CUDA_SUCCESS)
        return r;
    if (!atomic_compare_exchange_strong(&device->builtins, &none, builtins))
        ct_builtins_destroy(builtins); /* another thread was faster */
    return CUDA_SUCCESS;
}

static unsigned blocks_for(uint64_t elements, uint64_t per_block, uint64_t limit)
{
    uint64_t blocks = elements / per_block + (elements % per_block != 0);

    return (unsigned)(blocks < limit ? blocks : limit);
}

CUresult ct_builtin_memset(struct ct_stream *stream, uint64_t address, uint64_t pitch, unsigned element_bytes, uint32_t value,
                           uint64_t width, uint64_t height)
{
    const struct ct_device *device = stream->context->device;
    const struct ct_builtins *builtins = atomic_load_explicit(&device->builtins, memory_order_acquire);
    unsigned index = element_bytes == 1 ? CT_MEMSET8 : element_bytes == 2 ? CT_MEMSET16 : CT_MEMSET32;
    const struct memset_params params = {address, pitch, width, height, value};
    unsigned block = (unsigned)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);

    if (width == 0 || height == 0)
        return CUDA_SUCCESS;
    if (!builtins)
        return ct_fail(CUDA_ERROR_UNKNOWN, "our own kernels were not prepared");
    block = block < CT_BLOCK ? block : CT_BLOCK;
    const struct ct_launch_code code = {.image = builtins->kernels[index].image, .info = &builtins->kernels[index].info};
    const struct ct_launch_shape shape = {
        .grid = {blocks_for(width, block, CT_MAX_BLOCKS_IN_ROW),
                 blocks_for(height, 1, (uint64_t)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)), 1},
        .block = {block, 1, 1},
    };
    return ct_launch_record(stream, &code, &shape, &params);
}
