/* SPDX-License-Identifier: Apache-2.0 */
/* Advice is kept as a sorted list of disjoint spans of pages; adjacent spans differ in their advice. Pages without advice are in no span.
 * A change rebuilds the list: programs give advice rarely, and for whole allocations. */
#include "advice.h"

#include "core/base/locks.h"
#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CT_CHANNEL "memory"

struct span {
    uint64_t first, end; /* addresses of pages */
    struct ct_advice advice;
};

/* The list is process-wide because addresses are. */
static struct {
    struct ct_mutex lock;
    struct span *spans;
    size_t count;
} known = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_ADVICE)};

static const struct ct_advice nothing; /* zero */

static bool same_location(CUmemLocation a, CUmemLocation b)
{
    return a.type == b.type && a.id == b.id;
}

static bool same(const struct ct_advice *a, const struct ct_advice *b)
{
    return a->read_mostly == b->read_mostly && a->accessed_by == b->accessed_by && same_location(a->preferred, b->preferred) &&
           same_location(a->prefetched, b->prefetched);
}

static void widen(uint64_t start, uint64_t size_bytes, uint64_t *first, uint64_t *end)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    *first = start & ~(page - 1);
    *end = (start + size_bytes + page - 1) & ~(page - 1);
}

/* A list that is being built in ascending order of addresses. */
struct writer {
    struct span *spans;
    size_t count;
};

static void put(struct writer *to, uint64_t first, uint64_t end, const struct ct_advice *advice)
{
    struct span *last = to->count ? &to->spans[to->count - 1] : NULL;

    if (first >= end || same(advice, &nothing))
        return;
    if (last && last->end == first && same(&last->advice, advice))
        last->end = end;
    else
        to->spans[to->count++] = (struct span){first, end, *advice};
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void put_changed(struct writer *to, uint64_t first, uint64_t end, struct ct_advice advice, ct_advice_change change, const void *user)
{
    if (first >= end)
        return;
    change(&advice, user);
    put(to, first, end, &advice);
}

/* Writes all spans with [first, end) changed: the spans before it, then the range itself including its gaps, then the spans after it. */
static void rewrite_locked(struct writer *to, uint64_t first, uint64_t end, ct_advice_change change, const void *user)
{
    uint64_t done = first; /* [first, done) is written */
    size_t i;

    for (i = 0; i < known.count && known.spans[i].first < end; i++) {
        const struct span *span = &known.spans[i];

        put(to, span->first, least(span->end, first), &span->advice);
        if (span->end <= first)
            continue;
        put_changed(to, done, most(span->first, done), nothing, change, user);
        put_changed(to, most(span->first, first), least(span->end, end), span->advice, change, user);
        done = least(span->end, end);
        if (span->end > end) {
            put(to, end, span->end, &span->advice);
            i++;
            break;
        }
    }
    put_changed(to, done, end, nothing, change, user);
    for (; i < known.count; i++)
        put(to, known.spans[i].first, known.spans[i].end, &known.spans[i].advice);
}

CUresult ct_advice_apply(uint64_t start, uint64_t size_bytes, ct_advice_change change, const void *user)
{
    struct writer to = {0};
    uint64_t first, end;
    CUresult r = CUDA_SUCCESS;

    widen(start, size_bytes, &first, &end);
    ct_mutex_lock(&known.lock);
    to.spans = malloc((2 * known.count + 3) * sizeof *to.spans); /* spans split at the ends of the range, gaps, the tail */
    if (to.spans) {
        rewrite_locked(&to, first, end, change, user);
        free(known.spans);
        known.spans = to.spans;
        known.count = to.count;
    } else {
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the list of memory advice");
    }
    ct_mutex_unlock(&known.lock);
    return r;
}

static void join(struct ct_advice *common, const struct ct_advice *other)
{
    const CUmemLocation none = {.type = CU_MEM_LOCATION_TYPE_INVALID};

    common->read_mostly = common->read_mostly && other->read_mostly;
    common->accessed_by &= other->accessed_by;
    if (!same_location(common->preferred, other->preferred))
        common->preferred = none;
    if (!same_location(common->prefetched, other->prefetched))
        common->prefetched = none;
}

struct ct_advice ct_advice_common(uint64_t start, uint64_t size_bytes)
{
    struct ct_advice common = nothing;
    uint64_t first, end, done;

    widen(start, size_bytes, &first, &end);
    done = first;
    ct_mutex_lock(&known.lock);
    for (size_t i = 0; i < known.count && done < end; i++) {
        const struct span *span = &known.spans[i];

        if (span->end <= done)
            continue;
        if (span->first > done)
            break; /* a gap */
        if (done == first)
            common = span->advice;
        join(&common, &span->advice);
        done = span->end;
    }
    ct_mutex_unlock(&known.lock);
    return done < end ? nothing : common;
}

static void start_with(struct ct_advice *advice, const void *user)
{
    *advice = (struct ct_advice){.preferred = *(const CUmemLocation *)user};
}

CUresult ct_advice_start(uint64_t start, uint64_t size_bytes, CUmemLocation preferred)
{
    return ct_advice_apply(start, size_bytes, start_with, &preferred);
}

static void clear(struct ct_advice *advice, const void *user)
{
    (void)user;
    *advice = nothing;
}

void ct_advice_forget(uint64_t start, uint64_t size_bytes)
{
    bool is_empty;

    ct_mutex_lock(&known.lock);
    is_empty = known.count == 0;
    ct_mutex_unlock(&known.lock);
    if (!is_empty)
        ct_advice_apply(start, size_bytes, clear, NULL); /* if this is out of memory, old advice remains, which is harmless */
}
