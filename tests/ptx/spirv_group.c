/* SPDX-License-Identifier: Apache-2.0 */
/* A work-group in SPIR-V: subgroups, whose threads diverge and reconverge, and barriers.
 *
 * Threads of a subgroup that execute together are a tangle (as in SPV_KHR_maximal_reconvergence). It is split where its threads branch to
 * different labels, and merged as that extension requires: at a construct's merge block all threads that entered the construct and exit
 * there, at a loop's continue target all that are in the same iteration. So that all of them are waited for, each construct that was
 * entered is a frame, which records the threads that are still inside.
 *
 * What the specification leaves open is decided by the run's schedule, a seed: which subgroup continues and how far, which of a
 * subgroup's tangles does, whether a tangle's threads execute instruction by instruction or thread by thread, and in which order. */
#include "spirv_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 lanes;

enum { LANES_MAX = 128, GROUPS_MAX = 1024 };

struct frame {
    struct frame *parent; /* of the construct around it; in the free list, the next one */
    uint32_t header, merge, next;
    bool is_loop;
    uint32_t round;
    lanes pending, at_merge, at_next; /* threads inside; threads at the merge block; at the continue target */
};

struct tangle {
    lanes members;
    const uint32_t *at;
    uint32_t label; /* the current block */
    struct frame *frame;
    bool waits; /* at a barrier */
};

struct subgroup {
    unsigned first; /* thread */
    unsigned n;
    struct tangle tangles[LANES_MAX]; /* the newest one last */
};

/* The decisions of the seed. */
struct policy {
    bool by_thread, backwards; /* one thread after the other; the highest first */
    bool at_once;              /* any tangle may continue, not only the newest */
    bool fine;                 /* others may execute before each access to memory */
    unsigned burst;            /* number of steps before another subgroup may execute */
};

struct group {
    struct spirv_program p;
    struct policy policy;
    struct subgroup *subgroups;
    unsigned n_subgroups;
    struct frame *free_frames, **blocks; /* blocks: the allocations that contain frames */
    unsigned n_blocks;
    uint64_t random;
};

static bool has(lanes set, unsigned lane)
{
    return set >> lane & 1;
}

static unsigned pick_below(struct group *g, unsigned n)
{
    g->random = g->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(g->random >> 33) % n;
}

/* ---- frames ---- */

static struct frame *new_frame(struct group *g)
{
    enum { FRAMES = 64 };
    struct frame *frame = g->free_frames;

    if (!frame) {
        struct frame **blocks = realloc(g->blocks, (g->n_blocks + 1) * sizeof *blocks);

        if (blocks)
            g->blocks = blocks;
        if (!blocks || !(frame = calloc(FRAMES, sizeof *frame)))
            return NULL;
        g->blocks[g->n_blocks++] = frame;
        for (unsigned i = 0; i + 1 < FRAMES; i++)
            frame[i].parent = &frame[i + 1];
    }
    g->free_frames = frame->parent;
    return frame;
}

static void free_frame(struct group *g, struct frame *frame)
{
    frame->parent = g->free_frames;
    g->free_frames = frame;
}

static void spawn(struct group *g, struct subgroup *s, lanes members, uint32_t label, struct frame *frame)
{
    s->tangles[s->n++] = (struct tangle){.members = members, .at = g->p.ids[label].def, .label = label, .frame = frame};
}

/* Continues where no thread is inside any more. */
static void settle(struct group *g, struct subgroup *s, struct frame *frame)
{
    if (frame->pending)
        return;
    if (frame->at_next) {
        frame->pending = frame->at_next;
        frame->at_next = 0;
        spawn(g, s, frame->pending, frame->next, frame);
        return;
    }
    if (frame->at_merge)
        spawn(g, s, frame->at_merge, frame->merge, frame->parent);
    free_frame(g, frame);
}

static void leave(struct group *g, struct subgroup *s, struct frame *from, const struct frame *to, lanes members)
{
    for (struct frame *frame = from, *parent; frame != to; frame = parent) {
        parent = frame->parent;
        frame->pending &= ~members;
        settle(g, s, frame);
    }
}

/* A branch of some threads to a label: out of constructs, to the next iteration of a loop, or just forward. */
static void jump(struct group *g, struct subgroup *s, struct frame *from, lanes members, uint32_t label)
{
    struct frame *to = from;

    while (to && label != to->merge && !(to->is_loop && (label == to->next || label == to->header)))
        to = to->parent;
    if (!to) {
        spawn(g, s, members, label, from);
        return;
    }
    leave(g, s, from, to, members);
    if (label == to->header && to->is_loop) {
        to->round++;
        spawn(g, s, members, label, to);
        return;
    }
    to->pending &= ~members;
    if (label == to->merge)
        to->at_merge |= members;
    else
        to->at_next |= members;
    settle(g, s, to);
}

static bool enter(struct group *g, struct tangle *t)
{
    const uint32_t *w = t->at;
    const bool is_loop = spirv_op(w) == SpvOpLoopMerge;
    struct frame *frame;

    if (is_loop && t->frame && t->frame->is_loop && t->frame->header == t->label)
        return true; /* next iteration */
    if (!(frame = new_frame(g)))
        return spirv_wrong(&g->p, "no memory");
    *frame = (struct frame){.parent = t->frame,
                            .header = is_loop ? t->label : 0,
                            .merge = w[1],
                            .next = is_loop ? w[2] : 0,
                            .is_loop = is_loop,
                            .pending = t->members};
    t->frame = frame;
    return true;
}

/* ---- branches ---- */

static uint32_t target(struct group *g, const uint32_t *w, unsigned thread)
{
    const uint64_t selector = spirv_op(w) == SpvOpBranch ? 0 : spirv_read(&g->p, w[1], thread);

    if (spirv_op(w) == SpvOpBranch)
        return w[1];
    if (spirv_op(w) == SpvOpBranchConditional)
        return selector ? w[2] : w[3];
    for (uint32_t i = 3; i + 1 < spirv_length(w); i += 2)
        if (selector == w[i])
            return w[i + 1];
    return w[2];
}

/* The tangle's threads branch to their targets, those with the same label together. */
static void split(struct group *g, struct subgroup *s, struct tangle t)
{
    lanes rest = t.members;

    while (rest) {
        const unsigned low = (unsigned)((uint64_t)rest ? __builtin_ctzll((uint64_t)rest) : 64 + __builtin_ctzll((uint64_t)(rest >> 64)));
        const unsigned high =
            (unsigned)((uint64_t)(rest >> 64) ? 127 - __builtin_clzll((uint64_t)(rest >> 64)) : 63 - __builtin_clzll((uint64_t)rest));
        const uint32_t label = target(g, t.at, s->first + (g->policy.backwards ? high : low));
        lanes together = 0;

        for (unsigned lane = low; lane <= high; lane++)
            if (has(rest, lane) && target(g, t.at, s->first + lane) == label)
                together |= (lanes)1 << lane;
        rest &= ~together;
        jump(g, s, t.frame, together, label);
    }
}

static bool terminate(struct group *g, struct subgroup *s, struct tangle t)
{
    switch (spirv_op(t.at)) {
    case SpvOpBranch:
        jump(g, s, t.frame, t.members, t.at[1]);
        return true;
    case SpvOpBranchConditional:
    case SpvOpSwitch:
        split(g, s, t);
        return true;
    case SpvOpReturn:
        leave(g, s, t.frame, NULL, t.members);
        return true;
    default:
        return spirv_wrong(&g->p, "a thread reached instruction %u", spirv_op(t.at));
    }
}

/* ---- subgroup instructions ---- */

static bool ballot(struct group *g, const struct subgroup *s, const struct tangle *t)
{
    lanes set = 0;

    for (unsigned lane = 0; lane < LANES_MAX; lane++)
        if (has(t->members, lane) && spirv_read(&g->p, t->at[4], s->first + lane))
            set |= (lanes)1 << lane;
    for (unsigned lane = 0; lane < LANES_MAX; lane++)
        for (unsigned word = 0; word < 4 && has(t->members, lane); word++)
            *spirv_part(&g->p, t->at[2], word, s->first + lane) = (uint32_t)(set >> (32 * word));
    return true;
}

/* Reading a thread that does not exist, or is not active here, gives an arbitrary value. */
static bool shuffle(struct group *g, const struct subgroup *s, const struct tangle *t)
{
    for (unsigned lane = 0; lane < LANES_MAX; lane++) {
        uint64_t from;

        if (!has(t->members, lane))
            continue;
        from = spirv_read(&g->p, t->at[5], s->first + lane);
        *spirv_part(&g->p, t->at[2], 0, s->first + lane) = from < LANES_MAX && has(t->members, (unsigned)from)
                                                               ? spirv_read(&g->p, t->at[4], s->first + (unsigned)from)
                                                               : g->p.run->unwritten & spirv_mask(g->p.ids[t->at[1]].bits);
    }
    return true;
}

/* All threads of a whole subgroup execute these together. */
static bool matrix(struct group *g, const struct subgroup *s, const struct tangle *t)
{
    if (g->p.run->subgroup_lanes != 32 || t->members != UINT32_MAX)
        return spirv_wrong(&g->p, "not all 32 threads of a subgroup execute an instruction with a matrix");
    return spirv_execute_matrix(&g->p, t->at, s->first);
}

/* ---- steps ---- */

enum kind { PLAIN, ACCESS, NOTHING, ENTERS, ENDS, GROUP, BARRIER };

static enum kind kind_of(uint32_t op)
{
    static const uint8_t kinds[] = {
        [SpvOpLabel] = NOTHING,
        [SpvOpVariable] = NOTHING,
        [SpvOpMemoryBarrier] = NOTHING,
        [SpvOpSelectionMerge] = ENTERS,
        [SpvOpLoopMerge] = ENTERS,
        [SpvOpBranch] = ENDS,
        [SpvOpBranchConditional] = ENDS,
        [SpvOpSwitch] = ENDS,
        [SpvOpReturn] = ENDS,
        [SpvOpUnreachable] = ENDS,
        [SpvOpControlBarrier] = BARRIER,
        [SpvOpGroupNonUniformBallot] = GROUP,
        [SpvOpGroupNonUniformShuffle] = GROUP,
        [SpvOpAccessChain] = ACCESS,
        [SpvOpLoad] = ACCESS,
        [SpvOpStore] = ACCESS,
        [SpvOpAtomicLoad... SpvOpAtomicXor] = ACCESS,
    };

    return spirv_is_matrix_op(op) ? GROUP : op < sizeof kinds ? (enum kind)kinds[op] : PLAIN;
}

/* PTX ISA, bar.sync: what threads wrote before it, in shared and global memory, is performed for all participating threads. In SPIR-V a
 * barrier states which memory it orders; this machine executes in program order anyway, so it only checks the statement. */
static bool orders_memory(struct group *g, const uint32_t *w)
{
    const uint64_t semantics = spirv_read(&g->p, w[3], 0),
                   global = SpvMemorySemanticsUniformMemoryMask | SpvMemorySemanticsCrossWorkgroupMemoryMask;

    if (semantics & SpvMemorySemanticsAcquireReleaseMask && semantics & SpvMemorySemanticsWorkgroupMemoryMask && semantics & global)
        return true;
    return spirv_wrong(&g->p, "a barrier with the semantics %#llx orders not all memory", (unsigned long long)semantics);
}

static bool execute_group(struct group *g, const struct subgroup *s, const struct tangle *t)
{
    const uint32_t op = spirv_op(t->at);

    return spirv_is_matrix_op(op) ? matrix(g, s, t) : op == SpvOpGroupNonUniformBallot ? ballot(g, s, t) : shuffle(g, s, t);
}

static bool execute(struct group *g, const uint32_t *w, unsigned thread)
{
    const enum kind kind = kind_of(spirv_op(w));

    return kind == NOTHING || (kind == ACCESS ? spirv_access(&g->p, w, thread) : spirv_evaluate(&g->p, w, thread));
}

static bool for_thread(struct group *g, const uint32_t *from, const uint32_t *to, unsigned thread)
{
    for (const uint32_t *w = from; w < to && !g->p.stopped; w += spirv_length(w))
        if (!execute(g, w, thread))
            return false;
    return true;
}

static bool for_members(struct group *g, const struct subgroup *s, lanes members, const uint32_t *from, const uint32_t *to)
{
    for (unsigned i = 0; i < g->p.run->subgroup_lanes; i++) {
        const unsigned lane = g->policy.backwards ? g->p.run->subgroup_lanes - 1 - i : i;

        if (has(members, lane) && !for_thread(g, from, to, s->first + lane))
            return false;
    }
    return true;
}

/* The instructions up to the next one that concerns all threads, or, in fine steps, up to the next access. */
static const uint32_t *find_stretch(const struct group *g, const uint32_t *from)
{
    const uint32_t *w = from;

    for (enum kind kind; (kind = kind_of(spirv_op(w))) <= NOTHING; w += spirv_length(w))
        if (g->policy.fine && kind == ACCESS && w > from && spirv_op(w) != SpvOpAccessChain)
            break;
    return w;
}

static bool run_stretch(struct group *g, const struct subgroup *s, struct tangle *t)
{
    const uint32_t *end = find_stretch(g, t->at);
    bool ok = true;

    if (g->policy.by_thread)
        ok = for_members(g, s, t->members, t->at, end);
    else
        for (const uint32_t *w = t->at; w < end && ok; w += spirv_length(w))
            ok = for_members(g, s, t->members, w, w + spirv_length(w));
    t->at = end;
    return ok;
}

/* Executes a stretch of a tangle and the instruction that ends it. */
static bool step(struct group *g, struct subgroup *s, unsigned which)
{
    struct tangle *t = &s->tangles[which], gone;
    enum kind kind;

    if (!run_stretch(g, s, t))
        return false;
    kind = kind_of(spirv_op(t->at));
    if (kind == ENDS) {
        gone = *t;
        s->n--;
        memmove(t, t + 1, (s->n - which) * sizeof *t);
        g->p.quiet++;
        return terminate(g, s, gone);
    }
    if (kind == BARRIER && spirv_read(&g->p, t->at[1], 0) != SpvScopeSubgroup) {
        t->waits = true;
        return orders_memory(g, t->at);
    }
    if (kind == ACCESS)
        return true;
    if ((kind == ENTERS && !enter(g, t)) || (kind == GROUP && !execute_group(g, s, t)))
        return false;
    t->at += spirv_length(t->at);
    return true;
}

/* ---- barriers ---- */

/* The iterations of the loops around: together with the instruction they identify a dynamic instance. */
static uint64_t instance_of(const struct tangle *t)
{
    uint64_t hash = (uintptr_t)t->at;

    for (const struct frame *frame = t->frame; frame; frame = frame->parent)
        if (frame->is_loop)
            hash = (hash ^ frame->header ^ (uint64_t)frame->round << 32) * UINT64_C(0x100000001b3);
    return hash;
}

/* SPIR-V, OpControlBarrier: all threads of the group, at one dynamic instance. */
static bool meet_all(struct group *g)
{
    uint64_t instance = 0;
    unsigned here = 0;

    for (unsigned i = 0; i < g->n_subgroups; i++)
        for (unsigned k = 0; k < g->subgroups[i].n; k++) {
            const struct tangle *t = &g->subgroups[i].tangles[k];

            if (here && instance_of(t) != instance)
                return spirv_wrong(&g->p, "threads of one group wait at different barriers, or in different rounds");
            instance = instance_of(t);
            here += (unsigned)__builtin_popcountll((uint64_t)t->members) + (unsigned)__builtin_popcountll((uint64_t)(t->members >> 64));
        }
    return here == g->p.run->threads ||
           spirv_wrong(&g->p, "%u of %u threads have ended before a barrier", g->p.run->threads - here, g->p.run->threads);
}

static void go_on(struct tangle *t)
{
    t->waits = false;
    t->at += spirv_length(t->at);
}

/* No thread can run: those that wait at barriers meet. If one tangle of a subgroup blocks the others, only that one continues. */
static bool meet(struct group *g)
{
    if (g->p.run->barriers == SPIRV_BARRIERS_OF_ALL && !meet_all(g))
        return false;
    for (unsigned i = 0; i < g->n_subgroups; i++) {
        struct subgroup *s = &g->subgroups[i];

        for (unsigned k = g->policy.at_once || !s->n ? 0 : s->n - 1; k < s->n; k++)
            go_on(&s->tangles[k]);
    }
    return true;
}

/* ---- the schedule ---- */

/* The tangle of a subgroup that may continue; the number of its tangles if there is none. */
static unsigned choose_tangle(struct group *g, const struct subgroup *s)
{
    const unsigned start = g->policy.at_once && s->n ? pick_below(g, s->n) : 0;

    if (!s->n || !g->policy.at_once)
        return s->n && !s->tangles[s->n - 1].waits ? s->n - 1 : s->n;
    for (unsigned i = 0; i < s->n; i++)
        if (!s->tangles[(start + i) % s->n].waits)
            return (start + i) % s->n;
    return s->n;
}

/* Lets a subgroup run for a while. False: no subgroup can. */
static bool run_some(struct group *g, bool *ok)
{
    const unsigned start = pick_below(g, g->n_subgroups);

    for (unsigned i = 0; i < g->n_subgroups; i++) {
        struct subgroup *s = &g->subgroups[(start + i) % g->n_subgroups];
        unsigned which = choose_tangle(g, s), steps = 1 + pick_below(g, g->policy.burst);

        if (which == s->n)
            continue;
        for (; which < s->n && steps-- && *ok && !g->p.stopped; which = choose_tangle(g, s))
            *ok = step(g, s, which);
        return true;
    }
    return false;
}

static bool is_over(const struct group *g)
{
    for (unsigned i = 0; i < g->n_subgroups; i++)
        if (g->subgroups[i].n)
            return false;
    return true;
}

static enum spirv_end run_all(struct group *g)
{
    const uint64_t limit = g->p.run->quiet_limit ? g->p.run->quiet_limit : 1000000;
    bool ok = true;

    while (ok && !g->p.stopped && g->p.quiet < limit)
        if (!run_some(g, &ok)) {
            if (is_over(g))
                return SPIRV_RETURNED;
            ok = meet(g);
        }
    if (ok && !g->p.stopped)
        snprintf(g->p.run->message, sizeof g->p.run->message, "it does not end");
    return g->p.stopped ? SPIRV_STOPPED : ok ? SPIRV_GAVE_UP : SPIRV_WRONG;
}

static bool start(struct group *g)
{
    const uint32_t threads = g->p.run->threads, width = g->p.run->subgroup_lanes;

    g->n_subgroups = (threads + width - 1) / width;
    g->subgroups = calloc(g->n_subgroups, sizeof *g->subgroups);
    if (!g->subgroups)
        return spirv_wrong(&g->p, "no memory");
    for (unsigned i = 0; i < g->n_subgroups; i++) {
        struct subgroup *s = &g->subgroups[i];
        lanes members = 0;

        s->first = i * width;
        for (unsigned lane = 0; lane < width && s->first + lane < threads; lane++)
            members |= (lanes)1 << lane;
        s->tangles[s->n++] = (struct tangle){.members = members, .at = g->p.entry, .label = g->p.entry[1]};
    }
    return true;
}

enum spirv_end spirv_run(const uint32_t *words, size_t n_words, struct spirv_run *run)
{
    const uint32_t seed = run->schedule;
    struct group g = {
        .policy = {.by_thread = seed & 1, .backwards = seed & 2, .at_once = seed & 4, .fine = seed & 8, .burst = seed & 16 ? 4 : 1000},
        .random = seed,
    };
    enum spirv_end end = SPIRV_WRONG;

    run->message[0] = 0;
    if (spirv_program_init(&g.p, words, n_words, run) && start(&g))
        end = run_all(&g);
    spirv_program_finish(&g.p);
    for (unsigned i = 0; i < g.n_blocks; i++)
        free(g.blocks[i]);
    free(g.blocks);
    free(g.subgroups);
    return end;
}
