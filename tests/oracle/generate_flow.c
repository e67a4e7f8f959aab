/* SPDX-License-Identifier: Apache-2.0 */
/* Control flow of random kernels: branches, loops, branch tables, loops with several entries, calls, early returns.
 *
 * Lanes: if warp instructions are enabled, each context knows the register that holds the mask of active lanes. It is updated by ballots
 * among them: before a branch, at the head of each loop iteration, and behind code from which threads may have returned. */
#include "generate_tree.h"

#include <stdio.h>
#include <string.h>

static struct context inner(const struct context *c)
{
    struct context in = *c;

    in.is_uniform = false;
    in.depth++;
    return in;
}

static unsigned new_mask(const struct context *c)
{
    return c->mask ? ++c->function->n_masks : 0;
}

/* A condition that differs between threads, or is the same for all of the block. */
static void put_condition(const struct context *c, struct text *out, unsigned condition, bool is_uniform)
{
    if (is_uniform)
        text_put(out, "    and.b32 %%cr%u, %s, %u;\n    setp.%s.u32 %%c%u, %%cr%u, %u;\n", condition,
                 pick(c->g, 2)   ? "%ua"
                 : pick(c->g, 2) ? "%ub"
                                 : "%block",
                 1u << pick(c->g, 3), pick(c->g, 2) ? "ne" : "eq", condition, condition, 0);
    else if (pick(c->g, 3))
        text_put(out, "    setp.%s.%s %%c%u, %%r%u, %%r%u;\n", pick(c->g, 2) ? "lt" : "ge", pick(c->g, 2) ? "s32" : "u32", condition,
                 pick(c->g, 12), pick(c->g, 12));
    else if (pick(c->g, 2))
        text_put(out, "    and.b32 %%cr%u, %%r%u, %u;\n    setp.ne.u32 %%c%u, %%cr%u, 0;\n", condition, pick(c->g, 12), 1u << pick(c->g, 6),
                 condition, condition);
    else
        text_put(out, "    mov.pred %%c%u, %%p%u;\n", condition, pick(c->g, 6));
}

/* Lanes for which the condition holds, among those of `from`. */
static void put_ballot(struct text *out, unsigned to, const char *sign, unsigned condition, unsigned from)
{
    if (to)
        text_put(out, "    vote.sync.ballot.b32 %%m%u, %s%%c%u, %%m%u;\n", to - 1, sign, condition, from - 1);
}

/* Updates the mask behind code from which threads may have returned. */
static void put_survivors(const struct context *c, struct text *out, unsigned exits_before)
{
    if (c->mask && c->g->n_exits != exits_before)
        text_put(out, "    vote.sync.ballot.b32 %%m%u, %%yes, %%m%u;\n", c->mask - 1, c->mask - 1);
}

/* ---- if ---- */

static struct node *make_if(const struct context *c)
{
    struct generator *g = c->g;
    const bool is_uniform = c->is_uniform && pick(g, 2), has_else = pick(g, 2);
    const unsigned label = g->n_labels++, condition = label, exits = g->n_exits;
    struct node *node = node_create(g, has_else ? 3 : 2);
    struct context then = inner(c), other = inner(c);

    then.is_uniform = other.is_uniform = is_uniform;
    then.mask = new_mask(c);
    other.mask = has_else ? new_mask(c) : 0;
    put_condition(c, &node->parts[0].text, condition, is_uniform);
    put_ballot(&node->parts[0].text, then.mask, "", condition, c->mask);
    put_ballot(&node->parts[0].text, other.mask, "!", condition, c->mask);
    text_put(&node->parts[0].text, "    @!%%c%u bra%s L%u_%s;\n", condition, is_uniform ? ".uni" : "", label, has_else ? "else" : "end");
    node->parts[0].children = flow_list(&then, 1 + pick(g, 5));
    if (has_else) {
        text_put(&node->parts[1].text, "    bra%s L%u_end;\nL%u_else:\n", pick(g, 2) ? ".uni" : "", label, label);
        node->parts[1].children = flow_list(&other, 1 + pick(g, 4));
    }
    text_put(&node->parts[node->n_parts - 1].text, "L%u_end:\n", label);
    put_survivors(c, &node->parts[node->n_parts - 1].text, exits);
    return node;
}

/* ---- loops ---- */

/* The number of iterations of a thread, or of all threads of the block. */
static void put_trips(const struct context *c, struct text *out, unsigned loop, bool is_uniform)
{
    if (is_uniform)
        text_put(out, "    and.b32 %%cr%u, %s, 3;\n    add.u32 %%cr%u, %%cr%u, 1;\n", loop, pick(c->g, 2) ? "%ua" : "%block", loop, loop);
    else if (pick(c->g, 4))
        text_put(out, "    and.b32 %%cr%u, %%r%u, %u;\n", loop, pick(c->g, 12), pick(c->g, 3) ? 3 : 7);
    else
        text_put(out, "    mov.u32 %%cr%u, %u;\n", loop, 1 + pick(c->g, 4));
    text_put(out, "    mov.u32 %%i%u, 0;\n", loop);
}

/* Leaves the loop somewhere in an iteration. */
static void put_break(const struct context *c, struct text *out, unsigned loop, unsigned mask)
{
    const unsigned condition = c->g->n_labels++;

    put_condition(c, out, condition, false);
    put_ballot(out, mask, "!", condition, mask);
    text_put(out, "    @%%c%u bra L%u_end;\n", condition, loop);
}

static struct node *make_loop(const struct context *c)
{
    struct generator *g = c->g;
    const bool is_uniform = c->is_uniform && pick(g, 2), may_break = !is_uniform && pick(g, 3) == 0;
    const unsigned loop = g->n_labels++, exits = g->n_exits;
    struct node *node = node_create(g, may_break ? 3 : 2);
    struct text *head = &node->parts[0].text, *foot = &node->parts[node->n_parts - 1].text;
    struct context in = inner(c);

    in.is_uniform = is_uniform;
    in.loops++;
    in.mask = new_mask(c);
    put_trips(c, head, loop, is_uniform);
    if (in.mask)
        text_put(head, "    mov.b32 %%m%u, %%m%u;\n", in.mask - 1, c->mask - 1);
    text_put(head, "L%u:\n    setp.lt.u32 %%c%u, %%i%u, %%cr%u;\n", loop, loop, loop, loop);
    put_ballot(head, in.mask, "", loop, in.mask);
    text_put(head, "    @!%%c%u bra%s L%u_end;\n", loop, is_uniform ? ".uni" : "", loop);
    node->parts[0].children = flow_list(&in, 1 + pick(g, 4));
    if (may_break) {
        put_break(&in, &node->parts[1].text, loop, in.mask);
        node->parts[1].children = flow_list(&in, 1 + pick(g, 3));
    }
    text_put(foot, "    add.u32 %%i%u, %%i%u, 1;\n    bra.uni L%u;\nL%u_end:\n", loop, loop, loop, loop);
    put_survivors(c, foot, exits);
    return node;
}

/* ---- switch ---- */

static struct node *make_switch(const struct context *c)
{
    struct generator *g = c->g;
    const unsigned label = g->n_labels++, n = 2 + 2 * pick(g, 2), exits = g->n_exits; /* 2 or 4 targets */
    struct node *node = node_create(g, n + 1);
    struct context in = inner(c);

    in.mask = 0;
    text_put(&node->parts[0].text, "L%u_targets: .branchtargets", label);
    for (unsigned i = 0; i < n; i++)
        text_put(&node->parts[0].text, "%s L%u_%u", i ? "," : "", label, pick(g, 5) ? i : 0);
    text_put(&node->parts[0].text, ";\n    and.b32 %%cr%u, %%r%u, %u;\n    brx.idx %%cr%u, L%u_targets;\n", label, pick(g, 12), n - 1,
             label, label);
    for (unsigned i = 0; i < n; i++) {
        text_put(&node->parts[i].text, "L%u_%u:\n", label, i);
        node->parts[i].children = flow_list(&in, 1 + pick(g, 3));
        if (pick(g, 4)) /* else falls through into the next case */
            text_put(&node->parts[i + 1].text, "    bra L%u_end;\n", label);
    }
    text_put(&node->parts[n].text, "L%u_end:\n", label);
    put_survivors(c, &node->parts[n].text, exits);
    return node;
}

/* ---- arbitrary graphs: some blocks, and jumps between them until the fuel is used up ---- */

static struct node *make_graph(const struct context *c)
{
    struct generator *g = c->g;
    const unsigned label = g->n_labels++, n = 3 + pick(g, 3), exits = g->n_exits;
    struct node *node = node_create(g, n + 1);
    struct context in = inner(c);

    in.mask = 0;
    in.loops += 2;
    text_put(&node->parts[0].text, "    mov.u32 %%i%u, %u;\n", label, 4 + pick(g, 8));
    put_condition(c, &node->parts[0].text, label, false);
    text_put(&node->parts[0].text, "    @%%c%u bra L%u_%u;\n", label, label, 1 + pick(g, n - 1));
    for (unsigned i = 0; i < n; i++) {
        const unsigned condition = g->n_labels++;
        struct text *behind = &node->parts[i + 1].text;

        text_put(&node->parts[i].text, "L%u_%u:\n    sub.u32 %%i%u, %%i%u, 1;\n    setp.eq.u32 %%c%u, %%i%u, 0;\n    @%%c%u bra L%u_end;\n",
                 label, i, label, label, condition, label, condition, label);
        node->parts[i].children = flow_list(&in, 1 + pick(g, 3));
        put_condition(c, behind, condition, false);
        text_put(behind, "    @%s%%c%u bra L%u_%u;\n", pick(g, 2) ? "!" : "", condition, label, pick(g, n));
        if (pick(g, 4) == 0)
            text_put(behind, "    bra L%u_%u;\n", label, pick(g, n));
    }
    text_put(&node->parts[n].text, "L%u_end:\n", label);
    put_survivors(c, &node->parts[n].text, exits);
    return node;
}

/* ---- calls ---- */

/* Whether a call here may be recursive and is in a loop: there would be as many calls as all loops of all activations have iterations. */
static bool may_multiply(const struct context *c)
{
    return c->loops && !c->is_kernel && has(c, FEATURE_RECURSION);
}

/* In functions, calls that may be recursive end at a depth, which is an argument of its own. */
static struct node *make_call(const struct context *c)
{
    struct generator *g = c->g;
    const unsigned callee = pick(g, c->n_callable);
    const bool by_address = has(c, FEATURE_INDIRECT) && pick(g, 3) == 0, takes_mask = (g->features & FEATURE_WARPS) != 0;
    const bool takes_depth = (g->features & FEATURE_RECURSION) != 0;
    const unsigned label = by_address || takes_depth ? g->n_labels++ : 0;
    struct node *node = node_create(g, 1);
    struct text *out = &node->parts[0].text;
    char arguments[64];

    if (takes_mask && !c->mask) { /* the callee would need to know the active lanes */
        expand(c, out, "$gadd.u32 $r, $R, $R;");
        return node;
    }
    if (takes_depth && !c->is_kernel)
        text_put(out, "    setp.eq.u32 %%stop, %%depth, 0;\n    sub.u32 %%less, %%depth, 1;\n    @%%stop bra L%u_end;\n", label);
    text_put(out, "    {\n    .param .b32 v0;\n    .param .b64 v1;\n    .param .b64 v2;\n    .param .b64 v3;\n%s%s    .param .b32 v_r;\n",
             takes_mask ? "    .param .b32 v4;\n" : "", takes_depth ? "    .param .b32 v5;\n" : "");
    text_put(out, "    st.param.b32 [v0], %%r%u;\n    st.param.b64 [v1], %%q%u;\n", pick(g, 12), pick(g, 6));
    text_put(out, "    st.param.b64 [v2], %%in;\n    st.param.b64 [v3], %%mine;\n");
    if (takes_mask)
        text_put(out, "    st.param.b32 [v4], %%m%u;\n", c->mask - 1);
    if (takes_depth && c->is_kernel)
        text_put(out, "    st.param.b32 [v5], %u;\n", pick(g, 4));
    else if (takes_depth)
        text_put(out, "    st.param.b32 [v5], %%less;\n");
    snprintf(arguments, sizeof arguments, "v0, v1, v2, v3%s%s", takes_mask ? ", v4" : "", takes_depth ? ", v5" : "");
    if (by_address && !c->is_kernel && !takes_depth) { /* a prototype would fit the caller, too */
        text_put(out, "    L%u: .calltargets f0", label);
        for (unsigned i = 1; i < c->n_callable; i++)
            text_put(out, ", f%u", i);
        text_put(out, ";\n    mov.u64 %%callee, f%u;\n    call (v_r), %%callee, (%s), L%u;\n", callee, arguments, label);
    } else if (by_address) {
        text_put(out, "    L%u: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _, .param .b64 _, .param .b64 _%s%s);\n",
                 label, takes_mask ? ", .param .b32 _" : "", takes_depth ? ", .param .b32 _" : "");
        text_put(out, "    mov.u64 %%callee, f%u;\n    call (v_r), %%callee, (%s), L%u;\n", callee, arguments, label);
    } else {
        text_put(out, "    call%s (v_r), f%u, (%s);\n", pick(g, 2) ? ".uni" : "", callee, arguments);
    }
    text_put(out, "    ld.param.b32 %%r%u, [v_r];\n    }\n", pick(g, 12));
    if (takes_depth && !c->is_kernel)
        text_put(out, "L%u_end:\n", label);
    return node;
}

/* ---- early returns ---- */

static struct node *make_exit(const struct context *c)
{
    struct generator *g = c->g;
    const unsigned condition = g->n_labels++;
    struct node *node = node_create(g, 1);
    struct text *out = &node->parts[0].text;

    put_condition(c, out, condition, false);
    if (c->mask)
        put_ballot(out, c->mask, "!", condition, c->mask);
    text_put(out, "    @%%c%u st.global.b32 [%%slot+4], %%r%u;\n    @%%c%u %s;\n", condition, pick(g, 12), condition,
             pick(g, 2) ? "ret" : "exit");
    g->n_exits++;
    return node;
}

static bool may_exit(const struct context *c)
{
    return has(c, FEATURE_EXITS) && c->is_kernel && c->depth < 3;
}

/* ---- statements ---- */

static struct node *make_statement(const struct context *c)
{
    const bool may_nest = c->depth < 4, is_outermost = c->depth == 0;
    const unsigned what = pick(c->g, is_outermost ? 80 : 100); /* the outer statements are control flow, the inner ones mostly arithmetic */
    struct node *node;

    if (what < 16 && (node = together_create(c)))
        return node;
    if (what < 24 && may_nest)
        return make_if(c);
    if (what < 31 && may_nest && c->loops < 2)
        return make_loop(c);
    if (what < 34 && may_nest && has(c, FEATURE_SWITCHES))
        return make_switch(c);
    if (what < 37 && may_nest && c->loops < 2 && has(c, FEATURE_IRREDUCIBLE))
        return make_graph(c);
    if (what < 41 && c->n_callable && has(c, FEATURE_CALLS) && !may_multiply(c))
        return make_call(c);
    if (what < 43 && may_exit(c))
        return make_exit(c);
    if (what < 55 && !c->is_kernel && has(c, FEATURE_CALLS | FEATURE_RECURSION) && !may_multiply(c))
        return make_call(c);
    return word_create(c);
}

struct node *flow_list(const struct context *c, unsigned n)
{
    struct node *first = NULL, **tail = &first;

    for (unsigned i = 0; i < n && (c->g->budget || i == 0); i++) {
        c->g->budget -= c->g->budget > 0;
        node_append(&tail, make_statement(c));
    }
    return first;
}
