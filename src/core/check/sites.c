/* SPDX-License-Identifier: Apache-2.0 */
#include "sites.h"

#include "core/base/log.h"
#include "kernel_report.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "check"

/* What has been reported. Another form of the same kernel, or the same module loaded again, has other sites, but the same place. */
struct place {
    struct place *next;
    char *kernel;
    uint32_t line, access;
    const char *kind; /* ct_check_kind */
    uint64_t times;
    bool counts; /* false: it is suppressed */
};

static struct {
    struct ct_mutex lock; /* guards everything below */
    struct ct_check_sites *sites;
    struct place *places;
} checked = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_CHECK)};

/* ---- life ---- */

static CUresult make(struct ct_function *function, struct ct_check_sites **out)
{
    struct ct_context *context = function->module->context;
    const size_t size_bytes = function->info.check_sites * sizeof(struct ptx2spv_check_site);
    struct ct_check_sites *sites = calloc(1, sizeof *sites);
    CUresult r;

    if (!sites)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the sites of a kernel");
    r = ct_backing_create_host(context, size_bytes, CT_MEMORY_HOST, &sites->memory);
    if (r != CUDA_SUCCESS) {
        free(sites);
        return r;
    }
    memset(sites->memory.host, 0, size_bytes);
    sites->context = context;
    sites->code = function->module->code;
    ct_object_retain(&sites->code->object);
    sites->name = function->decl->name;
    sites->image = function->module->image_address;
    sites->n = function->info.check_sites;
    *out = sites;
    return CUDA_SUCCESS;
}

static void destroy(struct ct_check_sites *sites)
{
    ct_backing_destroy(sites->context, &sites->memory);
    ct_object_release(&sites->code->object);
    free(sites);
}

CUresult ct_check_sites_of(struct ct_function *function, struct ct_check_sites **out)
{
    struct ct_context *context = function->module->context;
    struct ct_check_sites *sites = atomic_load(&function->check_sites), *none = NULL;
    CUresult r;

    if (!sites) {
        if ((r = make(function, &sites)) != CUDA_SUCCESS)
            return r;
        ct_mutex_lock(&checked.lock);
        if (atomic_compare_exchange_strong(&function->check_sites, &none, sites)) {
            sites->next = checked.sites;
            checked.sites = sites;
        }
        ct_mutex_unlock(&checked.lock);
        if (none) { /* another thread has made them meanwhile */
            destroy(sites);
            sites = none;
        }
        atomic_store_explicit(&context->flush_checks, ct_check_flush, memory_order_release); /* pairs with ct_context_check */
    }
    *out = sites;
    return CUDA_SUCCESS;
}

void ct_check_sites_destroy_all(struct ct_context *context)
{
    struct ct_check_sites *mine = NULL, *sites;

    ct_mutex_lock(&checked.lock);
    for (struct ct_check_sites **at = &checked.sites; (sites = *at) != NULL;) {
        if (sites->context != context) {
            at = &sites->next;
            continue;
        }
        *at = sites->next;
        sites->next = mine;
        mine = sites;
    }
    ct_mutex_unlock(&checked.lock);
    while ((sites = mine) != NULL) {
        mine = sites->next;
        destroy(sites);
    }
}

/* ---- faults ---- */

/* The place of a fault; a new one has happened 0 times. NULL: out of memory. */
static struct place *place_locked_or_null(const struct ct_check_sites *sites, const struct ptx2spv_check_site *site)
{
    const char *kind = ct_check_kind(site);
    struct place *place = checked.places;

    for (; place; place = place->next)
        if (place->line == site->line && place->access == site->access && place->kind == kind && !strcmp(place->kernel, sites->name))
            return place;
    if (!(place = calloc(1, sizeof *place)) || !(place->kernel = strdup(sites->name))) {
        free(place);
        return NULL;
    }
    place->line = site->line;
    place->access = site->access;
    place->kind = kind;
    place->next = checked.places;
    checked.places = place;
    return place;
}

static void report_locked(const struct ct_check_sites *sites, const struct ptx2spv_check_site *site)
{
    struct place *place = place_locked_or_null(sites, site);

    if (!place)
        return;
    if (!place->times)
        place->counts = ct_check_report_fault(sites, site);
    place->times += site->count;
}

/* Takes what was counted at a site. False: nothing. A kernel that runs meanwhile may describe its next fault at once. */
static bool take(struct ptx2spv_check_site *site, struct ptx2spv_check_site *out)
{
    _Atomic uint32_t *fault = (_Atomic uint32_t *)&site->fault, *count = (_Atomic uint32_t *)&site->count;

    if (atomic_load_explicit(fault, memory_order_acquire) == PTX2SPV_CHECK_NONE) /* the kernel writes it last */
        return false;
    *out = *site;
    atomic_store(fault, PTX2SPV_CHECK_NONE);
    out->count = atomic_exchange(count, 0);
    return true;
}

static void flush_locked(const struct ct_check_sites *sites)
{
    struct ptx2spv_check_site *all = sites->memory.host, site;

    /* The compiler numbers the sites of the last access first; site 0 is a dummy (ptx2spv/check/sites.c). */
    for (uint32_t i = sites->n; i-- > 1;)
        if (take(&all[i], &site))
            report_locked(sites, &site);
}

void ct_check_flush(struct ct_context *context_or_null)
{
    ct_mutex_lock(&checked.lock);
    for (const struct ct_check_sites *sites = checked.sites; sites; sites = sites->next)
        if (!context_or_null || sites->context == context_or_null)
            flush_locked(sites);
    ct_mutex_unlock(&checked.lock);
}

void ct_check_totals(uint64_t *out_reports, uint64_t *out_times)
{
    *out_reports = *out_times = 0;
    ct_mutex_lock(&checked.lock);
    for (const struct place *place = checked.places; place; place = place->next) {
        *out_reports += place->counts;
        *out_times += place->counts ? place->times : 0;
    }
    ct_mutex_unlock(&checked.lock);
}
