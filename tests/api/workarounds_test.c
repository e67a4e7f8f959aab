/* SPDX-License-Identifier: Apache-2.0 */
/* The table of workarounds: versions are compared as numbers, CUTTLE_WORKAROUNDS is applied, every row names an existing test, and the mask
 * reaches the compiler's target. */
#include "chosen_backend.h"
#include "core/device/backend.h"
#include "core/device/workarounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_table_is_whole(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CT_WORKAROUND_COUNT; i++) {
        const struct ct_workaround *row = ct_workaround((enum ct_workaround_index)i);
        char path[512];

        assert_true(row->drivers && *row->fault && *row->proof);
        snprintf(path, sizeof path, SOURCE_DIR "/%s", row->test);
        if (access(path, R_OK))
            fail_msg("%s: there is no test %s", row->name, row->test);
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(row->name, ct_workaround((enum ct_workaround_index)k)->name);
    }
}

static const struct {
    const char *name, *choice;
    unsigned driver;
    uint32_t want;
} choices[] = {
    {"the table", "", CT_DRIVER_POCL, CT_WORKAROUND(SECOND_STORES) | CT_WORKAROUND(SPLIT_TAILS) | CT_WORKAROUND(STORED_BOOLEANS)},
    {"another driver has others", "", CT_DRIVER_LAVAPIPE,
     CT_WORKAROUND(CONSTANT_CHOICES) | CT_WORKAROUND(TRUNCATED_CLOCK) | CT_WORKAROUND(HOISTED_LOADS) | CT_WORKAROUND(SLOW_SHARED) |
         CT_WORKAROUND(AVX512)},
    {"none", "none", CT_DRIVER_LAVAPIPE, 0},
    {"one, which the driver has", "constant-choices", CT_DRIVER_LAVAPIPE, CT_WORKAROUND(CONSTANT_CHOICES)},
    {"two, of which the driver has none", "lost-signs,swapped-bytes", CT_DRIVER_LAVAPIPE,
     CT_WORKAROUND(LOST_SIGNS) | CT_WORKAROUND(SWAPPED_BYTES)},
    {"all but one", "-avx512", CT_DRIVER_LAVAPIPE,
     CT_WORKAROUND(CONSTANT_CHOICES) | CT_WORKAROUND(TRUNCATED_CLOCK) | CT_WORKAROUND(HOISTED_LOADS) | CT_WORKAROUND(SLOW_SHARED)},
    {"all and one more", "all,lost-signs", CT_DRIVER_POCL,
     CT_WORKAROUND(SECOND_STORES) | CT_WORKAROUND(SPLIT_TAILS) | CT_WORKAROUND(STORED_BOOLEANS) | CT_WORKAROUND(LOST_SIGNS)},
    {"all and one more, without one", " all, lost-signs, -second-stores", CT_DRIVER_POCL,
     CT_WORKAROUND(SPLIT_TAILS) | CT_WORKAROUND(STORED_BOOLEANS) | CT_WORKAROUND(LOST_SIGNS)},
    {"a part of a name is none", "lost", CT_DRIVER_POCL, 0},
    {"what is no name switches nothing off", "-nonsense", CT_DRIVER_POCL,
     CT_WORKAROUND(SECOND_STORES) | CT_WORKAROUND(SPLIT_TAILS) | CT_WORKAROUND(STORED_BOOLEANS)},
};

static void test_option_chooses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const uint32_t mask = ct_workarounds_choose(choices[i].driver, "1.0", choices[i].choice);

        if (mask != choices[i].want)
            fail_msg("%s: %#x and not %#x", choices[i].name, mask, choices[i].want);
    }
}

static void test_unknown_words_are_found(void **state)
{
    const char *word;
    int length;

    (void)state;
    assert_null(ct_workarounds_unknown_or_null("", &length));
    assert_null(ct_workarounds_unknown_or_null("none", &length));
    assert_null(ct_workarounds_unknown_or_null("all,-avx512, lost-signs", &length));
    word = ct_workarounds_unknown_or_null("avx512,-none,x", &length);
    assert_int_equal(length, 5);
    assert_memory_equal(word, "-none", 5);
}

/* The versions are invented: no row has bounds so far. */
static const struct {
    const char *version, *first, *last;
    bool is_faulty;
} versions[] = {
    {"580.159.04", "", "", true},
    {"Mesa 25.0.7-2 (LLVM 15.0.6)", "", "25.0.6", false},
    {"Mesa 25.0.7-2 (LLVM 15.0.6)", "", "25.0.7", true},
    {"Mesa 25.0.7", "", "25.0", true},
    {"Mesa 25.0.7", "25.0.8", "", false},
    {"Mesa 25.0.10", "25.0.8", "", true},
    {"9.9", "10", "", false},
    {"2026.22.10.0", "", "2025.9", false},
    {"550.40", "560", "580", false},
    {"570", "560", "580", true},
    {"580.200.1", "560", "580", true},
    {"581", "560", "580", false},
    {"no number", "560", "580", true},
    {"", "560", "580", true},
};

static void test_versions_are_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (ct_workaround_is_of(versions[i].first, versions[i].last, versions[i].version) != versions[i].is_faulty)
            fail_msg("%s in [%s, %s]", versions[i].version, versions[i].first, versions[i].last);
}

/* ---- the mask in the compiler ---- */

enum { SAME = 0, OTHER = 1, NO_DEVICE = 77 };

/* In a process of its own, since the option is read once. */
static int target_under(const char *choice, uint32_t want)
{
    const struct ct_device_info *infos;
    unsigned count = 0;
    int status;
    pid_t child = fork();

    if (child == 0) {
        setenv("CUTTLE_WORKAROUNDS", choice, 1);
        if (backend_of_environment()->enumerate(&infos, &count) != CUDA_SUCCESS || !count)
            _exit(NO_DEVICE);
        _exit(infos[0].workarounds == want && infos[0].target.workarounds == (want & PTX2SPV_WORKAROUNDS) ? SAME : OTHER);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_DEVICE)
        skip();
    return WEXITSTATUS(status);
}

static void test_target_has_it(void **state)
{
    (void)state;
    assert_int_equal(target_under("none", 0), SAME);
    assert_int_equal(target_under("lost-signs,avx512", CT_WORKAROUND(LOST_SIGNS) | CT_WORKAROUND(AVX512)), SAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_whole),       cmocka_unit_test(test_option_chooses), cmocka_unit_test(test_unknown_words_are_found),
        cmocka_unit_test(test_versions_are_numbers), cmocka_unit_test(test_target_has_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
