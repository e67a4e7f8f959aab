/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperation of threads. Besides the threads' own parts of shared memory, `exchange` (%ex is the thread's element) and, for warps,
 * another such array (%wx) have 4 bytes for each thread, and `sums` has 16 words that only atomics change. Each statement ends with the
 * synchronization that the next one needs. */
#include "generate_tree.h"

/* ---- over all threads of the block that have not exited ---- */

/* Every thread stores a word; each reads that of some other thread. */
static void exchange(const struct context *c, struct text *out)
{
    expand(c, out,
           "st.shared.b32 [%ex], $s;bar.sync 0;<rem.u32 $0, $s, %n;|add.u32 $0, %self, $b;rem.u32 $0, $0, %n;>shl.b32 $0, $0, 2;"
           "add.u32 $0, %exchange, $0;ld.shared.b32 $r, [$0];bar.sync 0;");
}

static void count_in_shared(const struct context *c, struct text *out)
{
    expand(c, out,
           "and.b32 $0, $s, 0x3c;add.u32 $0, %sums, $0;$gred.shared.<add.u32|max.s32|min.u32|xor.b32|or.b32|and.b32> [$0], $R;bar.sync 0;"
           "and.b32 $0, $s, 0x3c;add.u32 $0, %sums, $0;$gld.shared.b32 $r, [$0];bar.sync 0;");
}

/* bar.red: popc, and, or. */
static void barrier_reduction(const struct context *c, struct text *out)
{
    expand(c, out,
           "<bar.red.popc.u32 $r, 0, $P;|bar.red.and.pred $p, 0, $P;|bar.red.or.pred $p, 0, !$P;|barrier.red.popc.u32 $r, 3, !$P;>");
}

static struct node *make_barrier(const struct context *c)
{
    struct node *node = node_create(c->g, 1);
    struct text *out = &node->parts[0].text;
    const unsigned what = pick(c->g, has(c, FEATURE_NAMED) ? 8 : 6);

    if (what < 4)
        exchange(c, out);
    else if (what < 6 && has(c, FEATURE_ATOMICS))
        count_in_shared(c, out);
    else if (what < 6)
        exchange(c, out);
    else
        barrier_reduction(c, out);
    return node;
}

/* ---- warps with different code; the number of threads is a multiple of 64 ---- */

/* Even warps pass words on and continue, odd warps wait for them. */
static void put_pipe(const struct context *c, struct text *out, unsigned label)
{
    const unsigned n = c->g->tree->n_threads, barrier = 1 + pick(c->g, 7);

    text_put(out, "    @%%odd bra L%u_odd;\n", label);
    expand(c, out, "st.shared.b32 [%ex], $s;");
    text_put(out, "    bar.arrive %u, %u;\n", barrier, n);
    expand(c, out, "$gadd.u32 $r, $R, $R;");
    text_put(out, "    bra.uni L%u_end;\nL%u_odd:\n    bar.sync %u, %u;\n", label, label, barrier, n);
    expand(c, out,
           "and.b32 $0, $s, 31;and.b32 $1, %self, -32;add.u32 $0, $0, $1;sub.u32 $0, $0, 32;shl.b32 $0, $0, 2;add.u32 $0, %exchange, $0;"
           "ld.shared.b32 $r, [$0];");
    text_put(out, "L%u_end:\n    bar.sync 0;\n", label);
}

/* Even and odd warps each synchronize among themselves, for some iterations. */
static void put_groups(const struct context *c, struct text *out, unsigned label)
{
    const unsigned half = c->g->tree->n_threads / 2;

    for (unsigned side = 0; side < 2; side++) {
        const unsigned barrier = 8 + side * 2, rounds = 1 + pick(c->g, 3);

        text_put(out, side ? "L%u_odd:\n" : "    @%%odd bra L%u_odd;\n", label);
        for (unsigned i = 0; i < rounds; i++) {
            expand(c, out, "st.shared.b32 [%ex], $s;");
            text_put(out, "    bar.sync %u, %u;\n", barrier, half);
            expand(c, out,
                   "and.b32 $0, $s, 31;and.b32 $1, %self, -32;add.u32 $0, $0, $1;shl.b32 $0, $0, 2;add.u32 $0, %exchange, $0;"
                   "ld.shared.b32 $r, [$0];");
            text_put(out, "    bar.sync %u, %u;\n", barrier + 1, half);
        }
        if (!side)
            text_put(out, "    bra.uni L%u_end;\n", label);
    }
    text_put(out, "L%u_end:\n    bar.sync 0;\n", label);
}

static struct node *make_named(const struct context *c)
{
    struct node *node = node_create(c->g, 1);
    const unsigned label = c->g->n_labels++;

    if (pick(c->g, 2))
        put_pipe(c, &node->parts[0].text, label);
    else
        put_groups(c, &node->parts[0].text, label);
    return node;
}

/* ---- over the lanes of a mask ---- */

/* The lane that a shuffle reads may not be active; then the result is replaced by the thread's own value. $2: that lane. */
static const char only_present[] = "selp.b32 $2, $2, %lane, $8;shr.u32 $3, $m, $2;and.b32 $3, $3, 1;setp.ne.u32 $9, $3, 0;selp.b32 $r, $0, "
                                   "$R, $9;selp.b32 $r, $R, $s, $8;";

static void shuffle(const struct context *c, struct text *out)
{
    static const char *const forms[] = {
        "mov.b32 $1, $R;and.b32 $1, $1, 31;shfl.sync.up.b32 $0|$8, $s, $1, <0|0x1800|0x1c00>, $m;sub.u32 $2, %lane, $1;",
        "mov.b32 $1, $R;and.b32 $1, $1, 31;shfl.sync.down.b32 $0|$8, $s, $1, <31|0x181f|0x1c1f|0x100f>, $m;add.u32 $2, %lane, $1;",
        "mov.b32 $1, $R;and.b32 $1, $1, 31;shfl.sync.bfly.b32 $0|$8, $s, $1, <31|0x181f|0x1e1f>, $m;xor.b32 $2, %lane, $1;",
        "mov.b32 $1, $R;shfl.sync.idx.b32 $0|$8, $s, $1, 31, $m;and.b32 $2, $1, 31;",
        "mov.b32 $1, $R;shfl.sync.idx.b32 $0|$8, $s, $1, 0x181f, $m;and.b32 $2, $1, 7;and.b32 $3, %lane, 24;or.b32 $2, $2, $3;",
    };
    struct text joined = {0};

    text_put(&joined, "%s%s", forms[pick(c->g, sizeof forms / sizeof *forms)], only_present);
    expand(c, out, joined.bytes);
    text_free(&joined);
}

/* Lanes pass words through shared memory between two bar.warp.sync: from the highest active lane. */
static void through_memory(const struct context *c, struct text *out)
{
    expand(c, out,
           "st.shared.b32 [%wx], $s;bar.warp.sync $m;bfind.u32 $0, $m;sub.u32 $0, $0, %lane;shl.b32 $0, $0, 2;"
           "add.u32 $0, %wx, $0;ld.shared.b32 $r, [$0];bar.warp.sync $m;");
}

static struct node *make_warp(const struct context *c)
{
    static const char *const others[] = {
        "vote.sync.<all|any|uni>.pred $p, <|!>$P, $m;",
        "vote.sync.ballot.b32 $r, <|!>$P, $m;",
        "and.b32 $0, $s, <3|1|7>;match.any.sync.b32 $r, $0, $m;",
        "and.b64 $5, $w, 1;match.any.sync.b64 $r, $5, $m;",
        "and.b32 $0, $s, <0|1>;match.all.sync.b32 $r|$8, $0, $m;xor.pred $p, $8, $P;",
    };
    struct node *node = node_create(c->g, 1);
    struct text *out = &node->parts[0].text;
    const unsigned what = pick(c->g, 12);

    if (what < 5)
        shuffle(c, out);
    else if (what < 6 && c->is_kernel && has(c, FEATURE_SHARED))
        through_memory(c, out);
    else if (what < 7 && has(c, FEATURE_REDUX))
        expand(c, out, "redux.sync.<add.s32|add.u32|min.s32|max.s32|min.u32|max.u32|and.b32|or.b32|xor.b32> $r, $s, $m;");
    else
        expand(c, out, others[pick(c->g, sizeof others / sizeof *others)]);
    return node;
}

struct node *together_create(const struct context *c)
{
    const bool may_meet = c->is_kernel && c->is_uniform && has(c, FEATURE_BARRIERS);
    const bool may_split = may_meet && has(c, FEATURE_NAMED) && c->g->tree->n_threads % 64 == 0;

    if (c->mask && (!may_meet || pick(c->g, 2)))
        return make_warp(c);
    if (may_split && pick(c->g, 2))
        return make_named(c);
    return may_meet ? make_barrier(c) : NULL;
}
