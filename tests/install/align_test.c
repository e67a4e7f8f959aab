/* SPDX-License-Identifier: Apache-2.0 */
/* The alignment of sequences for `cuttle trace --diff`: partners are equal and in order, and as many as the longest common subsequence has, by the textbook's
 * table. */
#include "tools/trace/align.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LENGTH_MAX = 60 };

static size_t longest_common(const unsigned *a, size_t n_a, const unsigned *b, size_t n_b)
{
    static size_t table[LENGTH_MAX + 1][LENGTH_MAX + 1];

    memset(table, 0, sizeof table);
    for (size_t i = 1; i <= n_a; i++)
        for (size_t k = 1; k <= n_b; k++) {
            const size_t best = table[i - 1][k] > table[i][k - 1] ? table[i - 1][k] : table[i][k - 1];

            table[i][k] = a[i - 1] == b[k - 1] ? table[i - 1][k - 1] + 1 : best;
        }
    return table[n_a][n_b];
}

/* Returns the number of partners, after checking that they are equal and in order. */
static size_t count_partners(const unsigned *a, size_t n_a, const unsigned *b, size_t n_b, const size_t *partners)
{
    size_t count = 0, next = 0;

    for (size_t i = 0; i < n_a; i++) {
        if (partners[i] == ALIGN_NONE)
            continue;
        assert_true(partners[i] >= next && partners[i] < n_b);
        assert_int_equal(a[i], b[partners[i]]);
        next = partners[i] + 1;
        count++;
    }
    return count;
}

static void random_sequences_have_the_most_partners(void **state)
{
    unsigned a[LENGTH_MAX], b[LENGTH_MAX];
    size_t partners[LENGTH_MAX];

    (void)state;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        const size_t n_a = (size_t)rand() % LENGTH_MAX, n_b = (size_t)rand() % LENGTH_MAX;
        const unsigned kinds = 1 + (unsigned)rand() % 8;

        for (size_t i = 0; i < n_a; i++)
            a[i] = (unsigned)rand() % kinds;
        for (size_t i = 0; i < n_b; i++)
            b[i] = (unsigned)rand() % kinds;
        assert_int_equal(align(a, n_a, b, n_b, partners), 0);
        assert_int_equal(count_partners(a, n_a, b, n_b, partners), longest_common(a, n_a, b, n_b));
    }
}

/* Sequences that differ too much: what is aligned is right, and the beginning is. */
static void what_differs_too_much_is_given_up(void **state)
{
    enum { SAME = 1000, OTHERS = ALIGN_DIFFERENCES_MAX };
    const size_t n = SAME + OTHERS;
    unsigned *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
    size_t *partners = malloc(n * sizeof *partners);

    (void)state;
    assert_true(a && b && partners);
    for (size_t i = 0; i < n; i++) {
        a[i] = (unsigned)i;
        b[i] = (unsigned)(i < SAME ? i : i + n);
    }
    assert_int_equal(align(a, n, b, n, partners), 1);
    assert_int_equal(count_partners(a, n, b, n, partners), SAME);
    assert_int_equal(align(a, n, b, SAME, partners), 0); /* just not too much */
    assert_int_equal(count_partners(a, n, b, SAME, partners), SAME);
    free(a);
    free(b);
    free(partners);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sequences_have_the_most_partners),
        cmocka_unit_test(what_differs_too_much_is_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
