/* SPDX-License-Identifier: Apache-2.0 */
/* Events between processes: a page of memory that all processes with the event have mapped.
 *
 * Records are numbered. Record n uses the slot n modulo SLOTS, in which the recording process stores its pid and, when the work before the
 * record is complete, the number. A record that is SLOTS behind counts as complete: its slot belongs to a newer one.
 * A waiting process sleeps on the slot (futex) and checks from time to time whether the recording process still runs. */
#include "shared_event.h"

#include "core/base/log.h"
#include "core/base/resource_limits.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CT_CHANNEL "ipc"
#define SLOTS 256u
#define CHECK_INTERVAL_NS 50000000 /* the interval at which a waiting process checks the recording process */

struct slot {
    _Atomic uint32_t done; /* the greatest complete record of this slot */
    atomic_int pid;        /* of the process that began the last record of this slot */
};

struct page {
    _Atomic uint32_t last;
    struct slot slots[SLOTS];
};

struct ct_shared_event {
    atomic_uint references;
    int fd;
    struct page *page;
};

static CUresult map(int fd, struct ct_shared_event **out)
{
    struct ct_shared_event *event = calloc(1, sizeof *event);
    void *page = event ? mmap(NULL, sizeof *event->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (page == MAP_FAILED) {
        free(event);
        close(fd);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an event of several processes");
    }
    atomic_init(&event->references, 1);
    event->fd = fd;
    event->page = page;
    *out = event;
    return CUDA_SUCCESS;
}

CUresult ct_shared_event_create(struct ct_shared_event **out)
{
    int fd;

    if (sizeof(struct page) > ct_limit_of_files())
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the limit on the size of files allows no event of several processes");
    fd = memfd_create("cuttle event", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(struct page)) != 0) {
        CUresult r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "memory for an event of several processes cannot be shared: %s", strerror(errno));

        if (fd >= 0)
            close(fd);
        return r;
    }
    return map(fd, out);
}

CUresult ct_shared_event_open(const struct ct_ipc_name *name, struct ct_shared_event **out)
{
    struct stat status;
    int fd;
    CUresult r = ct_ipc_name_open(CT_IPC_EVENT, name, &fd);

    if (r != CUDA_SUCCESS)
        return r;
    if (fstat(fd, &status) != 0 || status.st_size < (off_t)sizeof(struct page)) {
        close(fd);
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the handle is not that of an event");
    }
    return map(fd, out);
}

CUresult ct_shared_event_name(const struct ct_shared_event *event, struct ct_ipc_name *out)
{
    return ct_ipc_name_make(CT_IPC_EVENT, event->fd, out);
}

struct ct_shared_event *ct_shared_event_retain(struct ct_shared_event *event)
{
    atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
    return event;
}

void ct_shared_event_release(struct ct_shared_event *event)
{
    /* acq_rel: the last release sees all effects of the others */
    if (!event || atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) != 1)
        return;
    munmap(event->page, sizeof *event->page);
    close(event->fd);
    free(event);
}

static struct slot *slot_of(const struct ct_shared_event *event, uint32_t number)
{
    return &event->page->slots[number % SLOTS];
}

/* Numbers wrap around: they are compared by their distance. */
static bool reaches(uint32_t done, uint32_t number)
{
    return done != 0 && (int32_t)(done - number) >= 0;
}

uint32_t ct_shared_event_begin(struct ct_shared_event *event)
{
    uint32_t number = atomic_load(&event->page->last), next;

    do {
        next = number + 1 ? number + 1 : 1;
        /* before any process can wait for it; the later of two concurrent writers wins */
        atomic_store(&slot_of(event, next)->pid, getpid());
    } while (!atomic_compare_exchange_weak(&event->page->last, &number, next));
    atomic_store(&slot_of(event, next)->pid, getpid());
    return next;
}

void ct_shared_event_finish(struct ct_shared_event *event, uint32_t number)
{
    struct slot *slot = slot_of(event, number);
    uint32_t done = atomic_load(&slot->done);

    while (!reaches(done, number) && !atomic_compare_exchange_weak(&slot->done, &done, number))
        ;
    syscall(SYS_futex, &slot->done, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint32_t ct_shared_event_last(const struct ct_shared_event *event)
{
    return atomic_load(&event->page->last);
}

bool ct_shared_event_is_done(const struct ct_shared_event *event, uint32_t number)
{
    const struct slot *slot = slot_of(event, number);

    if (reaches(atomic_load(&slot->done), number) || ct_shared_event_last(event) - number >= SLOTS)
        return true;
    return kill(atomic_load(&slot->pid), 0) != 0 && errno == ESRCH;
}

void ct_shared_event_await(const struct ct_shared_event *event, uint32_t number)
{
    const struct timespec time = {.tv_nsec = CHECK_INTERVAL_NS};
    struct slot *slot = slot_of(event, number);

    while (!ct_shared_event_is_done(event, number)) {
        uint32_t done = atomic_load(&slot->done);

        if (!reaches(done, number))
            syscall(SYS_futex, &slot->done, FUTEX_WAIT, done, &time, NULL, 0);
    }
}
