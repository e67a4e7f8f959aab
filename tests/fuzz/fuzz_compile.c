/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: whole kernels. What the front end takes is compiled for a device, and the SPIR-V must be valid. The device and the forms of
 * synchronization and of shared memory follow from a sum over the text, so that a saved input shows the same again.
 *
 * Half of the mutations work on words and lines of the text instead of bytes: they exchange a word for another one of the same text, and
 * copy, remove or exchange lines. So most texts are still PTX, with other operands, other types and another control flow. */
#include "cuttle/ptx2spv.h"
#include "ptx/spirv_check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *__asan_default_options(void);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t max_size);

/* Arrays of any size are legal: calloc refuses those that are too large. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=512";
}

/* ---- devices ---- */

#define COMMON                                                                                                                             \
    .max_block_threads = 1024, .shared_bytes = 49152, .push_constant_bytes = 128, .float64 = 1, .float16 = 1, .int64 = 1, .int16 = 1,      \
    .int8 = 1
#define ATOMICS                                                                                                                            \
    .atomic_int64_global = 1, .atomic_int64_shared = 1, .atomic_float32_add_global = 1, .atomic_float32_add_shared = 1,                    \
    .atomic_float64_add_global = 1, .atomic_float64_add_shared = 1
#define VULKAN .dialect = PTX2SPV_VULKAN, COMMON, .storage8 = 1, .storage16 = 1, .memory_model_device_scope = 1

static const struct ptx2spv_target devices[] = {
    {VULKAN, .warp_form = PTX2SPV_WARP_COLLECTIVE, .subgroup_size = 8, .inlines = 1},
    {VULKAN, ATOMICS, .warp_form = PTX2SPV_WARP_NATIVE, .subgroup_size = 32, .shared_explicit_layout = 1, .shared_explicit_layout8 = 1,
     .shared_explicit_layout16 = 1, .denorm_preserve32 = 1, .denorm_flush32 = 1, .rounding_rte64 = 1, .exact_fma16 = 1, .exact_fma32 = 1,
     .exact_fma64 = 1, .pointer_rule = PTX2SPV_POINTER_OR, .pointer_mask = UINT64_C(0xffff800000000000)},
    {.dialect = PTX2SPV_OPENCL, COMMON, .warp_form = PTX2SPV_WARP_COLLECTIVE, .subgroup_size = 1, .llvm_functions = 1},
    {.dialect = PTX2SPV_OPENCL,
     COMMON,
     ATOMICS,
     .warp_form = PTX2SPV_WARP_NATIVE,
     .subgroup_size = 64,
     .exact_fma32 = 1,
     .exact_fma64 = 1,
     .vectorizes = 1,
     .vectors = PTX2SPV_VECTORS_LOADS_SPLIT},
};
enum { DEVICES = sizeof devices / sizeof *devices, SYNC_FORMS = PTX2SPV_SYNC_RESUMED + 1, SHARED_FORMS = PTX2SPV_SHARED_IN_MEMORY + 1 };

struct choice {
    struct ptx2spv_target target;
    enum ptx2spv_shared_form shared_form;
    uint32_t inline_max;
};

static struct choice choose(const uint8_t *bytes, size_t size)
{
    struct ptx2spv_target target;
    uint32_t sum = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * 16777619u;
    sum ^= sum >> 16;
    target = devices[sum % DEVICES];
    target.sync_form = sum / DEVICES % SYNC_FORMS;
    target.lockstep = sum / DEVICES / SYNC_FORMS % 4 == 0;
    target.workarounds = sum / DEVICES / SYNC_FORMS / 4 % 2 ? PTX2SPV_WORKAROUNDS : 0;
    sum /= DEVICES * SYNC_FORMS * 8;
    return (struct choice){target, (enum ptx2spv_shared_form)(sum % SHARED_FORMS), sum / SHARED_FORMS % 2};
}

/* ---- one input ---- */

static void on_diagnostic(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    *(size_t *)user += strlen(diagnostic->text);
}

static void check_kernel(const struct ptx2spv_module *module, unsigned index, const struct choice *choice)
{
    size_t seen = 0;
    const struct ptx2spv_options options = {
        .on_diagnostic = on_diagnostic, .user = &seen, .shared_form = choice->shared_form, .inline_max = choice->inline_max};
    struct ptx2spv_kernel kernel;
    char why[512];
    const enum ptx2spv_status status = ptx2spv_kernel_compile(module, index, &choice->target, &options, &kernel);

    if (status == PTX2SPV_INTERNAL || (status != PTX2SPV_OK && status != PTX2SPV_OUT_OF_MEMORY && !seen))
        abort(); /* a fault of the compiler, or refused without a word */
    if (status != PTX2SPV_OK)
        return;
    if (!spirv_check(kernel.words, kernel.n_words, why, sizeof why)) {
        fprintf(stderr, "invalid SPIR-V: %s\n", why);
        abort();
    }
    ptx2spv_kernel_finish(&kernel);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct choice choice = choose(bytes, size);
    const struct ptx2spv_options options = {0};
    struct ptx2spv_module *module = NULL;

    if (ptx2spv_module_create((const char *)bytes, size, &options, &module) == PTX2SPV_OK)
        for (unsigned i = 0; i < ptx2spv_module_kernel_count(module); i++)
            check_kernel(module, i, &choice);
    ptx2spv_module_destroy(module);
    return 0;
}

/* ---- mutations of words and lines ---- */

struct span {
    size_t start, size;
};

static bool is_part_of_word(uint8_t byte)
{
    return isalnum(byte) || byte == '_' || byte == '%' || byte == '$' || byte == '.';
}

static bool is_part_of_line(uint8_t byte)
{
    return byte != '\n';
}

/* The word or line around a random position; a line includes its end. */
static struct span random_span(const uint8_t *bytes, size_t size, bool (*is_part)(uint8_t byte))
{
    size_t start = (size_t)rand() % size, end;

    while (start < size - 1 && !is_part(bytes[start]))
        start++;
    for (end = start; end < size && is_part(bytes[end]); end++)
        ;
    while (start > 0 && is_part(bytes[start - 1]))
        start--;
    return (struct span){start, end - start + (is_part == is_part_of_line && end < size)};
}

/* Replaces a span by other bytes; returns the new size, or the old one if they do not fit. */
static size_t replace(uint8_t *bytes, size_t size, size_t max_size, struct span at, const uint8_t *by, size_t n)
{
    if (size - at.size + n > max_size)
        return size;
    memmove(bytes + at.start + n, bytes + at.start + at.size, size - at.start - at.size);
    memcpy(bytes + at.start, by, n);
    return size - at.size + n;
}

static size_t mutate_text(uint8_t *bytes, size_t size, size_t max_size)
{
    const bool words = rand() % 3 != 0;
    bool (*const is_part)(uint8_t byte) = words ? is_part_of_word : is_part_of_line;
    struct span to = random_span(bytes, size, is_part);
    const struct span from = random_span(bytes, size, is_part);
    uint8_t *copy = malloc(from.size ? from.size : 1);

    if (!copy)
        return size;
    memcpy(copy, bytes + from.start, from.size);
    if (!words && rand() % 3 == 0)
        to.size = 0; /* a line is copied */
    size = replace(bytes, size, max_size, to, copy, !words && rand() % 4 == 0 ? 0 : from.size);
    free(copy);
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max_size, unsigned seed)
{
    srand(seed);
    if (!size || rand() % 2)
        return LLVMFuzzerMutate(bytes, size, max_size);
    for (int rounds = 1 + rand() % 4; rounds > 0 && size; rounds--)
        size = mutate_text(bytes, size, max_size);
    return size;
}
