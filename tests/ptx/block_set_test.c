/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of block_set.c beside arrays that have a truth value for each block: random sets, from single blocks to nearly all. */
#include "ptx2spv/spirv/block_set.h"
#include "ir_machine.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { N_BLOCKS = 300, N_CASES = 2000 };
#define SEED UINT64_C(0x5851f42d4c957f2d)

struct case_data {
    jmp_buf exhausted;
    struct ct_arena arena;
    struct ct_block_marks marks;
    uint64_t words[CT_BLOCK_MARK_WORDS(N_BLOCKS)];
    uint64_t random;
    int n_meet; /* pairs that meet */
};

static void begin(struct case_data *c)
{
    *c = (struct case_data){.random = SEED, .marks = {.words = c->words}, .arena = {.on_exhausted = &c->exhausted}};
}

/* Some runs of blocks, some of them twice. */
static struct ct_block_set make_random(struct case_data *c, bool has[N_BLOCKS])
{
    const uint32_t n_runs = random_below(&c->random, 6), longest = random_below(&c->random, 2) ? 3 : 150;

    memset(has, 0, N_BLOCKS * sizeof *has);
    for (uint32_t r = 0; r < n_runs; r++) {
        const uint32_t first = random_below(&c->random, N_BLOCKS), n = 1 + random_below(&c->random, longest);

        for (uint32_t i = first; i < first + n && i < N_BLOCKS; i++) {
            has[i] = true;
            ct_block_mark(&c->marks, i);
        }
    }
    return ct_block_set_make(&c->arena, &c->marks);
}

static void expect(const struct ct_block_set *set, const bool has[N_BLOCKS])
{
    uint32_t n_runs = 0;

    for (uint32_t i = 0; i < N_BLOCKS; i++) {
        assert_int_equal(ct_block_set_has(set, i), has[i]);
        n_runs += has[i] && (i == 0 || !has[i - 1]);
    }
    assert_int_equal(set->n, n_runs);
    assert_false(ct_block_set_has(set, N_BLOCKS));
}

static void test_sets_have_what_was_marked(void **state)
{
    struct case_data c;
    bool has[N_BLOCKS];

    (void)state;
    begin(&c);
    if (setjmp(c.exhausted))
        fail_msg("there is not enough memory");
    for (int i = 0; i < N_CASES; i++) {
        const struct ct_block_set set = make_random(&c, has);

        expect(&set, has);
    }
    ct_arena_finish(&c.arena);
}

static void test_sets_meet_where_both_have_a_block(void **state)
{
    struct case_data c;
    bool has[2][N_BLOCKS];

    (void)state;
    begin(&c);
    if (setjmp(c.exhausted))
        fail_msg("there is not enough memory");
    for (int i = 0; i < N_CASES; i++) {
        const struct ct_block_set a = make_random(&c, has[0]), b = make_random(&c, has[1]);
        bool meet = false;

        for (uint32_t k = 0; k < N_BLOCKS; k++)
            meet |= has[0][k] && has[1][k];
        assert_int_equal(ct_block_sets_meet(&a, &b), meet);
        assert_int_equal(ct_block_sets_meet(&b, &a), meet);
        c.n_meet += meet;
    }
    assert_in_range(c.n_meet, N_CASES / 10, N_CASES * 9 / 10);
    ct_arena_finish(&c.arena);
}

/* Sets grow by several others: in place, and into new memory. */
static void test_united_sets_have_the_blocks_of_all(void **state)
{
    struct case_data c;
    bool all[N_BLOCKS], has[N_BLOCKS];

    (void)state;
    begin(&c);
    if (setjmp(c.exhausted))
        fail_msg("there is not enough memory");
    for (int i = 0; i < N_CASES; i++) {
        struct ct_block_set set = make_random(&c, all);

        for (uint32_t n = random_below(&c.random, 6); n > 0; n--) {
            const struct ct_block_set other = make_random(&c, has);

            ct_block_set_unite(&c.arena, &set, &other);
            for (uint32_t k = 0; k < N_BLOCKS; k++)
                all[k] |= has[k];
            expect(&set, all);
            expect(&other, has);
        }
    }
    ct_arena_finish(&c.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sets_have_what_was_marked),
                                       cmocka_unit_test(test_sets_meet_where_both_have_a_block),
                                       cmocka_unit_test(test_united_sets_have_the_blocks_of_all)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
