/* SPDX-License-Identifier: Apache-2.0 */
/* Long flat code compiles, to modules that are valid, that grow with the code, and whose constructs are nested less deep than the 80 levels
 * of llvmpipe (Mesa, LP_MAX_TGSI_NESTING). What they compute is tested by programs.flat, and how
 * the compiler's time grows by ptx.growth. */
#include "cuttle/ptx2spv.h"

#include "spirv_machine.h"
#include "../flat_code.h"

#include <setjmp.h>
#include <spirv/unified1/spirv.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#define NESTING_MAX 80

#ifdef SANITIZED
#define STEPS 500
#else
#define STEPS 2000
#endif

static const struct ptx2spv_target target = {
    .dialect = PTX2SPV_VULKAN,
    .warp_form = PTX2SPV_WARP_COLLECTIVE,
    .subgroup_size = 8,
    .push_constant_bytes = 128,
    .shared_bytes = 32768,
    .max_block_threads = 1024,
    .int64 = 1,
    .memory_model_device_scope = 1,
};

static void compile(enum flat_code_kind kind, unsigned n, struct ptx2spv_kernel *out)
{
    char *text = flat_code_text(kind, n);
    struct ptx2spv_module *module;

    assert_int_equal(ptx2spv_module_create(text, strlen(text), NULL, &module), PTX2SPV_OK);
    if (ptx2spv_kernel_compile(module, 0, &target, NULL, out) != PTX2SPV_OK)
        fail_msg("%u %s are refused", n, flat_codes[kind].name);
    ptx2spv_module_destroy(module);
    free(text);
}

/* How many constructs are nested: a merge instruction begins one, the label of its merge block ends it. */
static unsigned nesting_of(const struct ptx2spv_kernel *kernel)
{
    uint32_t *merges = malloc(kernel->n_words * sizeof *merges);
    unsigned depth = 0, deepest = 0;

    for (size_t i = 5; i < kernel->n_words; i += kernel->words[i] >> 16) {
        const uint32_t op = kernel->words[i] & 0xffff;

        if (op == SpvOpSelectionMerge || op == SpvOpLoopMerge)
            merges[depth++] = kernel->words[i + 1];
        else if (op == SpvOpLabel && depth && merges[depth - 1] == kernel->words[i + 1])
            depth--;
        deepest = depth > deepest ? depth : deepest;
    }
    free(merges);
    return deepest;
}

static void test_it_compiles(void **state)
{
    (void)state;
    for (enum flat_code_kind kind = 0; kind < FLAT_CODES; kind++) {
        const unsigned n = kind == FLAT_SHUFFLES ? STEPS / 2 : STEPS;
        struct ptx2spv_kernel kernel, larger;

        compile(kind, n / 2, &kernel);
        compile(kind, n, &larger);
        assert_valid_spirv(larger.words, larger.n_words);
        if (nesting_of(&larger) >= NESTING_MAX)
            fail_msg("%s: %u levels", flat_codes[kind].name, nesting_of(&larger));
        if (larger.n_words > 2.3 * (double)kernel.n_words) /* exponent 1.2 */
            fail_msg("%s: from %zu to %zu words", flat_codes[kind].name, kernel.n_words, larger.n_words);
        ptx2spv_kernel_finish(&kernel);
        ptx2spv_kernel_finish(&larger);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_compiles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
