/* SPDX-License-Identifier: Apache-2.0 */
/* A shadow is made when it is needed first, by a launch or a write. An allocation is known by its start and its id, so that a new one at the same address
 * gets another shadow. The shadows of allocations that are gone are found when a shadow is made; kernels that were launched before may still use them.
 * Mappings (vmm.h) are not in the map of addresses, so whoever unmaps one calls ct_shadows_unmapped.
 *
 * The host writes to shadows while kernels run: where the device's memory cannot be accessed by the host, they are in host memory. */
#include "shadows.h"

#include "core/base/config.h"
#include "core/base/log.h"
#include "memory_backing.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "check"
#define BUCKETS 1024u
#define ALIGN 256

struct ct_shadow {
    struct ct_shadow *next;
    uint64_t start, size_bytes;                    /* of the allocation */
    unsigned long long id;                         /* its id */
    struct ct_context *context;                    /* borrowed: it destroys its shadows */
    bool is_mapping;                               /* start and id are those of a mapping in a reservation */
    bool is_forgotten;                             /* everything counts as written, and nothing as accessed */
    struct ct_backing written, accesses, launches; /* zeroed: there is none */
};

static struct {
    struct ct_mutex lock; /* guards everything below */
    struct ct_shadow *living[BUCKETS];
    struct ct_shadow *removed;
} shadows = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_SHADOWS)};

enum { ACCESSES_BYTES = 8, LAUNCHES_BYTES = 2 }; /* for each byte */

static bool is_on(void)
{
    return ct_config()->check && (ct_config()->check_written || ct_config()->check_blocks || ct_config()->check_host);
}

static struct ct_shadow **bucket_of(uint64_t start)
{
    return &shadows.living[start * 0x9e3779b97f4a7c15u >> 54];
}

static bool is_device_memory(const struct ct_range *range)
{
    return range->kind == CT_RANGE_POOL || (range->kind == CT_RANGE_DEVICE && !range->imported);
}

/* The parts that the shadow of a range has. */
static bool has_written(const struct ct_range *range)
{
    return ct_config()->check_written && is_device_memory(range);
}

static bool has_accesses(const struct ct_range *range)
{
    return ct_config()->check_blocks && range->kind != CT_RANGE_SCRATCH;
}

static bool has_launches(const struct ct_range *range)
{
    return ct_config()->check_host && ct_range_is_of_host(range) && !is_device_memory(range);
}

/* ---- allocations that are gone ---- */

static bool is_gone(const struct ct_shadow *shadow)
{
    struct ct_range range;

    return !shadow->is_mapping &&
           (ct_address_find(shadow->start, 0, &range) != CUDA_SUCCESS || range.start != shadow->start || range.id != shadow->id);
}

static void remove_locked(struct ct_shadow **at)
{
    struct ct_shadow *shadow = *at;

    *at = shadow->next;
    shadow->next = shadows.removed;
    shadows.removed = shadow;
}

static void remove_gone_locked(void)
{
    for (unsigned b = 0; b < BUCKETS; b++)
        for (struct ct_shadow **at = &shadows.living[b]; *at;)
            if (is_gone(*at))
                remove_locked(at);
            else
                at = &(*at)->next;
}

void ct_shadows_unmapped(uint64_t address, uint64_t size_bytes)
{
    if (!is_on())
        return;
    ct_mutex_lock(&shadows.lock);
    for (unsigned b = 0; b < BUCKETS; b++)
        for (struct ct_shadow **at = &shadows.living[b]; *at;)
            if ((*at)->is_mapping && (*at)->start - address < size_bytes)
                remove_locked(at);
            else
                at = &(*at)->next;
    ct_mutex_unlock(&shadows.lock);
}

static struct ct_shadow *take_of(struct ct_shadow **at, const struct ct_context *context)
{
    struct ct_shadow *taken = NULL, *shadow;

    while ((shadow = *at) != NULL) {
        if (shadow->context != context) {
            at = &shadow->next;
            continue;
        }
        *at = shadow->next;
        shadow->next = taken;
        taken = shadow;
    }
    return taken;
}

struct ct_shadow *ct_shadows_take_removed(struct ct_context *context)
{
    struct ct_shadow *taken;

    if (!is_on())
        return NULL;
    ct_mutex_lock(&shadows.lock);
    taken = take_of(&shadows.removed, context);
    ct_mutex_unlock(&shadows.lock);
    return taken;
}

void ct_shadows_free(struct ct_context *context, struct ct_shadow *list)
{
    struct ct_shadow *shadow;

    while ((shadow = list) != NULL) {
        list = shadow->next;
        ct_backing_destroy(context, &shadow->written);
        ct_backing_destroy(context, &shadow->accesses);
        ct_backing_destroy(context, &shadow->launches);
        free(shadow);
    }
}

void ct_shadows_destroy_all(struct ct_context *context)
{
    struct ct_shadow *taken;

    ct_shadows_free(context, ct_shadows_take_removed(context));
    for (unsigned b = 0; b < BUCKETS; b++) {
        ct_mutex_lock(&shadows.lock);
        taken = take_of(&shadows.living[b], context);
        ct_mutex_unlock(&shadows.lock);
        ct_shadows_free(context, taken);
    }
}

/* ---- creation ---- */

static struct ct_shadow *find_locked_or_null(const struct ct_range *range)
{
    struct ct_shadow *shadow = *bucket_of(range->start);

    while (shadow && (shadow->start != range->start || shadow->id != range->id))
        shadow = shadow->next;
    return shadow;
}

static bool make_zeros(struct ct_context *context, uint64_t size_bytes, struct ct_backing *out)
{
    CUresult r = ct_backing_create_device(context, size_bytes, ALIGN, out);

    if (r == CUDA_SUCCESS && !out->host) {
        ct_backing_destroy(context, out);
        *out = (struct ct_backing){0};
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (r != CUDA_SUCCESS)
        r = ct_backing_create_host(context, size_bytes, CT_MEMORY_HOST, out);
    if (r == CUDA_SUCCESS)
        memset(out->host, 0, size_bytes);
    return r == CUDA_SUCCESS;
}

static bool make_memory(struct ct_context *context, const struct ct_range *range, struct ct_shadow *shadow)
{
    const uint64_t words = (shadow->size_bytes + 3) / 4 * 4;

    return (!has_written(range) || make_zeros(context, shadow->size_bytes, &shadow->written)) &&
           (!has_accesses(range) || make_zeros(context, ACCESSES_BYTES * words, &shadow->accesses)) &&
           (!has_launches(range) ||
            make_zeros(context, LAUNCHES_BYTES * (words + 4), &shadow->launches)); /* the range need not begin at a word */
}

/* A new shadow, which is in no list. context_or_null NULL: forgotten. NULL: out of memory. */
static struct ct_shadow *make_or_null(struct ct_context *context_or_null, const struct ct_range *range)
{
    struct ct_shadow *shadow = calloc(1, sizeof *shadow);

    if (!shadow)
        return NULL;
    *shadow = (struct ct_shadow){.start = range->start,
                                 .size_bytes = range->size_bytes,
                                 .id = range->id,
                                 .context = range->context,
                                 .is_mapping = range->kind == CT_RANGE_VIRTUAL,
                                 .is_forgotten = !context_or_null};
    if (context_or_null && !make_memory(context_or_null, range, shadow)) {
        ct_log(CT_LOG_INFO,
               "accesses to an allocation of %llu bytes are not examined as the options say: there is no memory for its shadow",
               (unsigned long long)range->size_bytes);
        shadow->is_forgotten = true;
    }
    return shadow;
}

/* Adds a new shadow, unless another thread has been faster; then it is destroyed. */
static struct ct_shadow *add(const struct ct_range *range, struct ct_shadow *made)
{
    struct ct_shadow *shadow;

    ct_mutex_lock(&shadows.lock);
    shadow = find_locked_or_null(range);
    if (!shadow) {
        remove_gone_locked();
        made->next = *bucket_of(range->start);
        *bucket_of(range->start) = made;
    }
    ct_mutex_unlock(&shadows.lock);
    if (!shadow)
        return made;
    made->next = NULL;
    ct_shadows_free(range->context, made);
    return shadow;
}

/* That of a range of a context which is in use; NULL: out of memory. */
static struct ct_shadow *shadow_of_or_null(struct ct_context *context_or_null, const struct ct_range *range)
{
    struct ct_shadow *shadow;

    ct_mutex_lock(&shadows.lock);
    shadow = find_locked_or_null(range);
    ct_mutex_unlock(&shadows.lock);
    if (!shadow && (shadow = make_or_null(context_or_null, range)) != NULL)
        shadow = add(range, shadow);
    return shadow;
}

/* ---- uses ---- */

static void forget(const struct ct_range *range)
{
    struct ct_shadow *shadow = shadow_of_or_null(NULL, range);

    if (!shadow)
        return;
    ct_mutex_lock(&shadows.lock);
    shadow->is_forgotten = true;
    ct_mutex_unlock(&shadows.lock);
}

static uint64_t first_word(uint64_t address)
{
    return address & ~UINT64_C(3);
}

/* The shadow that a context may use. The range lives, so its shadow does. */
static struct ct_shadow *usable_or_null(struct ct_context *context, const struct ct_range *range)
{
    struct ct_shadow *shadow;
    bool is_usable;

    if (range->owner != context->object.handle) {
        forget(range);
        return NULL;
    }
    shadow = shadow_of_or_null(context, range);
    if (!shadow)
        return NULL;
    ct_mutex_lock(&shadows.lock);
    shadow->is_forgotten |= shadow->context != context; /* a mapping, which kernels of several contexts may access */
    is_usable = !shadow->is_forgotten;
    ct_mutex_unlock(&shadows.lock);
    return is_usable ? shadow : NULL;
}

struct ct_shadow_places ct_shadow_places(struct ct_context *context, const struct ct_range *range, bool needs_accesses)
{
    struct ct_shadow_places places = {0, 0, 0};
    const bool needs_one = has_written(range) || (has_accesses(range) && needs_accesses) || has_launches(range);
    const struct ct_shadow *shadow = is_on() && needs_one ? usable_or_null(context, range) : NULL;

    if (shadow && shadow->written.host)
        places.written = shadow->written.address - shadow->start;
    if (shadow && shadow->accesses.host && needs_accesses)
        places.accesses = shadow->accesses.address - ACCESSES_BYTES * shadow->start;
    if (shadow && shadow->launches.host)
        places.launches = shadow->launches.address - LAUNCHES_BYTES * first_word(shadow->start);
    return places;
}

void ct_shadow_note_write(struct ct_context *context, uint64_t address, uint64_t size_bytes)
{
    const struct ct_shadow *shadow;
    struct ct_range range;

    if (!is_on() || !ct_config()->check_written || !address || !size_bytes ||
        ct_address_find(address, size_bytes, &range) != CUDA_SUCCESS || !is_device_memory(&range))
        return;
    shadow = usable_or_null(context, &range);
    if (shadow)
        memset((char *)shadow->written.host + (address - range.start), 0xff, size_bytes);
}

struct ct_word_launches ct_shadow_launches(struct ct_context *context, uint64_t address)
{
    struct ct_word_launches launches = {0, 0};
    const struct ct_shadow *shadow;
    struct ct_range range;

    if (ct_address_find(address, 1, &range) != CUDA_SUCCESS || !has_launches(&range) || !(shadow = usable_or_null(context, &range)) ||
        !shadow->launches.host)
        return launches;
    memcpy(&launches, (const char *)shadow->launches.host + LAUNCHES_BYTES * (first_word(address) - first_word(range.start)),
           sizeof launches);
    return launches;
}

void ct_shadow_forget(uint64_t address)
{
    struct ct_range range;

    if (is_on() && ct_address_find(address, 0, &range) == CUDA_SUCCESS && is_device_memory(&range))
        forget(&range);
}

void ct_shadow_forget_all(void)
{
    struct ct_range range;

    if (!is_on())
        return;
    for (uint64_t at = 0; at < UINT64_MAX && ct_address_find_any(at, UINT64_MAX - at, &range); at = range.start + range.size_bytes)
        if (is_device_memory(&range))
            forget(&range);
}
