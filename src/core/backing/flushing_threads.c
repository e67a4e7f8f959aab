/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's modes are in a register of each thread (MXCSR). No kernel can write it, and the driver writes it only once, before a thread's first kernel. But a
 * signal handler can change the registers of the thread that it interrupts. So the kernel below reads a page that is not accessible whenever a sum of subnormals is
 * zero; the handler clears the modes, makes the page accessible, and has the instruction executed again.
 *
 * A page that another thread has made accessible raises no signal. Each block therefore begins with a page of its own, and goes on to the next one until the sum is
 * right. To give each thread one block, a block waits until as many have begun as there are threads, or for some milliseconds. */
#include "flushing_threads.h"

#include "core/base/log.h"
#include "core/device/probe_job.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#define CT_CHANNEL "device"
#define PAGE_BYTES 4096u
#define N_PAGES 1024u
#define THREADS_MAX 128

/* Never unmapped; 0: there are none. Release: pairs with the acquire in the handler. */
static atomic_uintptr_t first_page;
static atomic_uint n_mended;

bool ct_flushing_threads_takes(const siginfo_t *info, ucontext_t *state)
{
#ifdef __x86_64__
    const uint32_t flush_to_zero = 0x8000, denormals_are_zero = 0x40;
    const uintptr_t first = atomic_load_explicit(&first_page, memory_order_acquire), address = (uintptr_t)info->si_addr;

    if (!first || address < first || address - first >= (uintptr_t)N_PAGES * PAGE_BYTES)
        return false;
    state->uc_mcontext.fpregs->mxcsr &= ~(flush_to_zero | denormals_are_zero);
    atomic_fetch_add_explicit(&n_mended, 1, memory_order_relaxed);
    return mprotect((void *)(address & ~(uintptr_t)(PAGE_BYTES - 1)), PAGE_BYTES, PROT_READ) == 0; /* NOLINT(performance-no-int-to-ptr) */
#else
    (void)info;
    (void)state;
    return false;
#endif
}

/* What the kernel reads and writes. */
struct job {
    uint64_t pages;
    uint32_t subnormal; /* the smallest one, of which the driver's compiler knows nothing */
    uint32_t wanted, arrived, failed, page;
};

static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .entry probe(.param .u64 job)\n"
                           "{\n"
                           ".reg .b32 %s, %r, %x, %page, %tries, %n, %wanted, %rounds;\n"
                           ".reg .b64 %job, %pages, %a;\n"
                           ".reg .pred %p;\n"
                           "ld.param.u64 %job, [job];\n"
                           "ld.global.u64 %pages, [%job];\n"
                           "ld.global.u32 %wanted, [%job+12];\n"
                           "mov.u32 %page, %ctaid.x;\n"
                           "mov.u32 %tries, 0;\n"
                           "again:\n"
                           "ld.volatile.global.u32 %s, [%job+8];\n"
                           "add.f32 %r, %s, %s;\n"
                           "setp.ne.u32 %p, %r, 0;\n"
                           "@%p bra keeps;\n"
                           "and.b32 %x, %page, 1023;\n"
                           "mad.wide.u32 %a, %x, 4096, %pages;\n"
                           "ld.volatile.global.u32 %x, [%a];\n"
                           "add.u32 %page, %page, %x;\n"
                           "add.u32 %page, %page, 1;\n"
                           "add.u32 %tries, %tries, 1;\n"
                           "setp.lt.u32 %p, %tries, 1024;\n"
                           "@%p bra again;\n"
                           "st.global.u32 [%job+20], 1;\n"
                           "keeps:\n"
                           "st.global.u32 [%job+24], %page;\n" /* so that the loads are needed */
                           "atom.global.add.u32 %n, [%job+16], 1;\n"
                           "mov.u32 %rounds, 0;\n"
                           "wait:\n"
                           "ld.volatile.global.u32 %n, [%job+16];\n"
                           "setp.ge.u32 %p, %n, %wanted;\n"
                           "@%p bra done;\n"
                           "add.u32 %rounds, %rounds, 1;\n"
                           "setp.lt.u32 %p, %rounds, 1000000;\n"
                           "@%p bra wait;\n"
                           "done:\n"
                           "ret;\n"
                           "}\n";
_Static_assert(N_PAGES == 1024 && PAGE_BYTES == 4096, "the kernel's constants");

/* llvmpipe starts a thread for each processor that the process may use (Mesa's documentation, "Environment variables": LP_NUM_THREADS). */
static uint32_t count_threads(void)
{
    const char *wanted = getenv("LP_NUM_THREADS");
    cpu_set_t processors;
    long n = THREADS_MAX;

    if (wanted)
        n = strtol(wanted, NULL, 10);
    else if (sched_getaffinity(0, sizeof processors, &processors) == 0) /* else there are more than 1024 */
        n = CPU_COUNT(&processors);
    return (uint32_t)(n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : n);
}

/* Those of an earlier device are made inaccessible again. A kernel that runs meanwhile has the same fault once more. */
static bool make_pages(void)
{
    void *pages = (void *)atomic_load_explicit(&first_page, memory_order_relaxed); /* NOLINT(performance-no-int-to-ptr) */

    if (pages)
        return mprotect(pages, (size_t)N_PAGES * PAGE_BYTES, PROT_NONE) == 0;
    pages = mmap(NULL, (size_t)N_PAGES * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return false;
    atomic_store_explicit(&first_page, (uintptr_t)pages, memory_order_release);
    return true;
}

bool ct_flushing_threads_mend(struct ct_device *device, struct ct_backend_device *opened)
{
#ifdef __x86_64__
    struct job job = {.subnormal = 1, .wanted = count_threads()};
    const struct ct_probe_job probe = {
        .text = text, .blocks = job.wanted, .threads = 1, .input = &job, .output = &job, .size_bytes = sizeof job};
    CUresult r;

    if (!make_pages())
        return false;
    job.pages = atomic_load_explicit(&first_page, memory_order_relaxed);
    r = ct_probe_execute(device->backend, opened, &device->info.target, &probe);
    if (r != CUDA_SUCCESS || job.failed) {
        ct_log(CT_LOG_INFO, "device %d: threads of the driver still flush subnormals (error %d)", device->ordinal, (int)r);
        return false;
    }
    ct_log(CT_LOG_INFO, "device %d: threads of the driver keep subnormals; %u of this process flushed them", device->ordinal,
           atomic_load(&n_mended));
    return true;
#else
    (void)device;
    (void)opened;
    return false;
#endif
}
