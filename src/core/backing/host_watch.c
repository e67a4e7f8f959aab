/* SPDX-License-Identifier: Apache-2.0 */
/* Pages are protected from the process as a whole, so other threads fault, too: those of the device's driver, and those that are in a call of the CUDA API. Only
 * threads that have called it, and are not in a call or in a host function, count as the program's. The page of a fault is no longer protected afterwards,
 * so each watch notes one access to a page, or a read and then a write.
 *
 * A system call that is given protected memory fails with EFAULT. So a page that lies partly outside of the watched memory is protected only if programs hardly
 * pass the rest of it to system calls: if nothing else is allocated there, or if the allocation is small.
 *
 * Memory that a GPU's driver has allocated for the host is in the GPU's page tables whatever the processor's say. Pages that it has imported are not protected:
 * some drivers (amdgpu, i915) import them again, by the processor's page tables, whenever these change. */
#include "host_watch.h"

#include "core/base/process.h"
#include "core/base/thread.h"
#include "host_aliases.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SMALL_ALLOCATION (UINT64_C(1) << 16) /* results of a program, rather than buffers that are read from files */
#define RETRIES 100

static struct {
    atomic_flag lock; /* a spin lock, since the handler takes it. Who has it accesses no watched memory and runs no other handler */
    struct ct_host_watch *first;
    atomic_bool were_used;
    atomic_uint unfinished;
} watches = {.lock = ATOMIC_FLAG_INIT};

static void lock_watches(sigset_t *before)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
    while (atomic_flag_test_and_set_explicit(&watches.lock, memory_order_acquire))
        ;
}

static void unlock_watches(const sigset_t *before)
{
    atomic_flag_clear_explicit(&watches.lock, memory_order_release);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static uintptr_t page_bytes(void)
{
    static _Atomic uintptr_t bytes; /* relaxed: each thread stores the same */
    uintptr_t known = atomic_load_explicit(&bytes, memory_order_relaxed);

    if (!known) {
        known = (uintptr_t)sysconf(_SC_PAGESIZE);
        atomic_store_explicit(&bytes, known, memory_order_relaxed);
    }
    return known;
}

static uintptr_t page_of(uintptr_t address)
{
    return address & ~(page_bytes() - 1);
}

/* ---- what is watched ---- */

static bool is_imported_by_gpu(const struct ct_range *range)
{
    const bool is_imported = range->kind == CT_RANGE_REGISTERED && ct_process.devices[range->device].info.kind != CT_DEVICE_CPU;

    return is_imported || ct_host_aliases_exist(range->memory);
}

/* Sets the protected pages of a range. False: there are none. */
static bool choose_pages(struct ct_watched_range *watched, const struct ct_range *range)
{
    const uintptr_t start = (uintptr_t)range->host, end = start + range->size_bytes, page = page_bytes();
    const bool owns_pages = range->kind != CT_RANGE_REGISTERED && !ct_range_is_of_pool(range);
    const bool is_small = owns_pages && range->size_bytes <= SMALL_ALLOCATION;
    const bool takes_first = is_small || (owns_pages && watched->start == start);
    const bool takes_last = is_small || (owns_pages && watched->end == end);

    watched->first_page = takes_first ? page_of(watched->start) : page_of(watched->start + page - 1);
    watched->end_page = takes_last ? page_of(watched->end + page - 1) : page_of(watched->end);
    return watched->first_page < watched->end_page;
}

void ct_host_watch_add(struct ct_host_watch *watch, uint64_t address, uint64_t size_bytes, bool is_written)
{
    struct ct_watched_range watched = {.is_written = is_written};
    struct ct_range range;

    if (!size_bytes || watch->n_ranges == CT_WATCHED_RANGES_MAX || ct_address_find(address, size_bytes, &range) != CUDA_SUCCESS ||
        !ct_range_is_of_host(&range) || !range.host || is_imported_by_gpu(&range))
        return;
    watched.start = (uintptr_t)range.host + (uintptr_t)(address - range.start);
    watched.end = watched.start + size_bytes;
    if (choose_pages(&watched, &range))
        watch->ranges[watch->n_ranges++] = watched;
}

/* ---- protection ---- */

static void protect(uintptr_t start, uintptr_t end, int protection)
{
    if (start < end)
        (void)mprotect((void *)start, end - start, protection); /* fails where nothing is mapped any more */
}

/* Protects [start, end) as the watches say: the strictest last. */
static void apply_locked(uintptr_t start, uintptr_t end)
{
    for (int writes = 0; writes <= 1; writes++)
        for (const struct ct_host_watch *watch = watches.first; watch; watch = watch->next)
            for (unsigned i = 0; i < watch->n_ranges; i++) {
                const struct ct_watched_range *range = &watch->ranges[i];
                const uintptr_t from = range->first_page > start ? range->first_page : start;

                if (range->is_written == (bool)writes)
                    protect(from, range->end_page < end ? range->end_page : end, writes ? PROT_NONE : PROT_READ);
            }
}

void ct_host_watch_begin(struct ct_host_watch *watch)
{
    sigset_t before;

    atomic_store(&watches.were_used, true);
    atomic_fetch_add(&watches.unfinished, 1);
    lock_watches(&before);
    watch->next = watches.first;
    watches.first = watch;
    for (unsigned i = 0; i < watch->n_ranges; i++)
        apply_locked(watch->ranges[i].first_page, watch->ranges[i].end_page);
    unlock_watches(&before);
}

void ct_host_watch_end(struct ct_host_watch *watch)
{
    struct ct_host_watch **at = &watches.first;
    sigset_t before;

    lock_watches(&before);
    while (*at != watch)
        at = &(*at)->next;
    *at = watch->next;
    for (unsigned i = 0; i < watch->n_ranges; i++) {
        protect(watch->ranges[i].first_page, watch->ranges[i].end_page, PROT_READ | PROT_WRITE);
        apply_locked(watch->ranges[i].first_page, watch->ranges[i].end_page);
    }
    unlock_watches(&before);
}

void ct_host_watch_finish(struct ct_host_watch *watch)
{
    watch->n_accesses = 0;
    atomic_fetch_sub(&watches.unfinished, 1);
}

void ct_host_watches_await(void)
{
    const struct timespec millisecond = {.tv_nsec = 1000 * 1000};

    for (int i = 0; i < 1000 && atomic_load(&watches.unfinished); i++)
        nanosleep(&millisecond, NULL);
}

/* ---- in the handler: only what is safe there. The first use of a thread's own variables may allocate memory (static TLS has no room for those of a library
 * that is loaded late); who accesses watched memory is not within an allocation ---- */

/* Whether the instruction wrote; where the processor does not say, it counts as a read. */
static bool is_write(const ucontext_t *state)
{
#ifdef __x86_64__
    return state->uc_mcontext.gregs[REG_ERR] & 2; /* the page fault's error code */
#else
    (void)state;
    return false;
#endif
}

static bool can_tell_writes(void)
{
#ifdef __x86_64__
    return true;
#else
    return false;
#endif
}

/* The frames from the faulting instruction on. */
static void take_stack(void *instruction, struct ct_host_stack *out)
{
    void *frames[CT_STACK_FRAMES + 16];
    const int n = backtrace(frames, sizeof frames / sizeof *frames); /* has been called before, so it loads no library now */
    int first = 0;

    while (first < n && frames[first] != instruction)
        first++;
    out->frames[0] = instruction;
    out->n = 1;
    for (int i = first + 1; i < n && out->n < CT_STACK_FRAMES; i++)
        out->frames[out->n++] = frames[i];
}

static void note(struct ct_host_watch *watch, uintptr_t address, bool writes, void *instruction)
{
    struct ct_host_access *access;

    if (watch->n_accesses == CT_HOST_ACCESSES_MAX)
        return;
    access = &watch->accesses[watch->n_accesses++];
    access->address = address;
    access->is_write = writes;
    take_stack(instruction, &access->stack);
}

/* Notes an access of the program in all watches that it conflicts with. Returns whether any watch protects the page. */
static bool take_locked(uintptr_t address, bool is_of_program, bool writes, void *instruction)
{
    const uintptr_t page = page_of(address);
    bool found = false;

    for (struct ct_host_watch *watch = watches.first; watch; watch = watch->next)
        for (unsigned i = 0; i < watch->n_ranges; i++) {
            const struct ct_watched_range *range = &watch->ranges[i];

            if (page < range->first_page || page >= range->end_page)
                continue;
            found = true;
            if (is_of_program && address >= range->start && address < range->end && (writes || range->is_written))
                note(watch, address, writes, instruction);
        }
    return found;
}

/* Another thread may have ended the watch between the fault and now. Then the instruction succeeds the next time, unless the program protected the memory. */
static bool is_stale(uintptr_t address)
{
    static _Thread_local uintptr_t last;
    static _Thread_local unsigned times;
    struct ct_range range;

    times = address == last ? times + 1 : 0;
    last = address;
    return times < RETRIES && ct_address_find(address, 1, &range) == CUDA_SUCCESS && ct_range_is_of_host(&range);
}

bool ct_host_watch_takes(const siginfo_t *info, const ucontext_t *state, void *instruction)
{
    const uintptr_t address = (uintptr_t)info->si_addr, page = page_of(address);
    bool found, is_of_program, writes;
    sigset_t before;

    if (info->si_code != SEGV_ACCERR || !atomic_load(&watches.were_used))
        return false;
    is_of_program = ct_thread_is_in_program();
    writes = is_write(state);
    lock_watches(&before);
    found = take_locked(address, is_of_program, writes, instruction);
    if (found) /* after a read of the program its next write is to be noted, too */
        protect(page, page + page_bytes(), is_of_program && can_tell_writes() && !writes ? PROT_READ : PROT_READ | PROT_WRITE);
    unlock_watches(&before);
    return found || is_stale(address);
}
