/* SPDX-License-Identifier: Apache-2.0 */
/* Our cuda.h agrees with NVIDIA's in every value, size, offset and renamed function. The compiler compares the functions' types
 * (abi_functions.c). Built only where NVIDIA's cuda.h of the same version is installed. */
#include "abi_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* Both tables are made from one list, so their names agree; their contents may differ. */
static void compare(const struct abi_table *ours, const struct abi_table *theirs, size_t count_min)
{
    assert_in_range(ours->count, count_min, SIZE_MAX);
    assert_int_equal(ours->count, theirs->count);
    for (size_t i = 0; i < ours->count; i++) {
        const struct abi_row *a = &ours->rows[i], *b = &theirs->rows[i];

        assert_string_equal(a->name, b->name);
        if (a->value != b->value)
            fail_msg("%s: ours %lld, theirs %lld", a->name, a->value, b->value);
        if (a->text && strcmp(a->text, b->text) != 0)
            fail_msg("%s: ours %s, theirs %s", a->name, a->text, b->text);
    }
}

/* The least number of rows: CUDA 13.0 has 869 enumerators, 517 members, 280 types and 80 renamed functions. */
#define MODE(mode)                                                                                                                         \
    static void same_in_##mode##_mode(void **state)                                                                                        \
    {                                                                                                                                      \
        (void)state;                                                                                                                       \
        compare(&abi_ours_##mode, &abi_theirs_##mode, 3000);                                                                               \
    }
ABI_MODES(MODE)
#undef MODE

int main(void)
{
#define MODE(mode) cmocka_unit_test(same_in_##mode##_mode),
    const struct CMUnitTest tests[] = {ABI_MODES(MODE)};
#undef MODE

    return cmocka_run_group_tests(tests, NULL, NULL);
}
