/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of SIGSEGV, SIGBUS, SIGFPE and SIGILL.
 *
 * A fault belongs to a kernel if it happens in a thread that the driver's library started: the thread's start routine is in that library
 * (struct library). The C library stores the start routine of a thread in the thread's descriptor, which is at pthread_self(); find_offset
 * determines where, with a thread whose routine is known. Where it is not found (ThreadSanitizer starts threads by a routine of its own) nothing
 * is watched. Lists of threads from /proc would be no substitute: drivers start threads at any time, and so does the application.
 *
 * A thread that faulted cannot go on: the instruction would fault again, and the driver has no way to end a kernel. So it sleeps in the
 * handler for ever, and a thread of ours (report_faults) does what a handler may not do: it logs, and gives the device up.
 *
 * The thread that exits may execute kernels, too, since Intel's runtime finishes its queues in an exit handler; it then waits for the end of the
 * process (core/device/exit_limit.c).
 *
 * Faults of memory that is being watched (host_watch.h), and those that a kernel of ours makes on purpose (flushing_threads.h), are none: the instruction is
 * executed again.
 *
 * All other faults are passed to the handler that was there before. A handler that the application installs later replaces this one, except while memory is
 * watched. */
#include "kernel_faults.h"

#include "address_space.h"
#include "flushing_threads.h"
#include "host_watch.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/base/shutdown_guard.h"
#include "core/base/thread.h"
#include "core/device/coredump.h"
#include "core/device/device_loss.h"
#include "core/device/exit_limit.h"
#include "core/device/running.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define CT_CHANNEL "fault"
#define LIBRARIES_MAX 16
#define REPORTS_MAX 64        /* further faults are not reported; at the first one the device is given up */
#define DESCRIPTOR_BYTES 2048 /* how much of a thread's descriptor is searched; it has 2304 bytes in glibc 2.36 on x86-64 */
#define WRAPPER_BYTES 256     /* how much of AddressSanitizer's object for a thread is searched */
#define NAMES_BYTES 640
#define PLACE_BYTES 256

/* An executable segment of a library whose threads execute kernels. */
struct library {
    const char *name; /* ct_device_info.thread_library */
    uintptr_t begin, end;
    bool shared;
};

struct report {
    int signal, code;
    uintptr_t address;
    const struct library *library;
    atomic_bool is_complete; /* release: pairs with the acquire in report_faults */
};

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { N_SIGNALS = sizeof signals / sizeof *signals };

/* Written before the handler is installed, or published by the atomic members, so that the handler may read it without a lock. */
static struct {
    struct ct_mutex lock;  /* rank CT_RANK_KERNEL_FAULTS: for adding libraries */
    size_t routine_offset; /* in a thread's descriptor */
#ifdef __SANITIZE_ADDRESS__
    const void *wrapper; /* the routine that AddressSanitizer starts all threads by */
    size_t inner_offset; /* of the thread's routine in the wrapper's argument */
#endif
    struct library libraries[LIBRARIES_MAX];
    atomic_uint n_libraries; /* release: pairs with the acquire in library_of_thread */
    struct sigaction before[N_SIGNALS];
    struct report reports[REPORTS_MAX];
    atomic_uint n_reports;
    sem_t reported;
    bool is_installed;
} watch = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_KERNEL_FAULTS)};

/* ---- in the handler: only what is safe there ---- */

static void *start_routine_of_this_thread(void)
{
    void *const *words = (void *const *)((char *)pthread_self() + watch.routine_offset);

#ifdef __SANITIZE_ADDRESS__
    if (words[0] == watch.wrapper)
        return *(void **)((char *)words[1] + watch.inner_offset);
#endif
    return words[0];
}

/* Whether an instruction belongs to a file, rather than to code that a compiler has just made. */
static bool is_in_file(const void *instruction)
{
#if defined __GLIBC_PREREQ && __GLIBC_PREREQ(2, 35)
    struct dl_find_object object;

    return _dl_find_object((void *)instruction, &object) == 0; /* documented as safe in signal handlers */
#else
    (void)instruction;
    return false;
#endif
}

static void *instruction_of(const siginfo_t *info, const ucontext_t *state)
{
#ifdef __x86_64__
    (void)info;
    return (void *)state->uc_mcontext.gregs[REG_RIP];
#elif defined __aarch64__
    (void)info;
    return (void *)state->uc_mcontext.pc;
#else
    (void)state;
    return info->si_addr;
#endif
}

/* The library that started the calling thread, if its threads execute kernels; else NULL. */
static const struct library *library_of_thread_or_null(const void *instruction)
{
    const uintptr_t routine = (uintptr_t)start_routine_of_this_thread();
    const unsigned n = atomic_load_explicit(&watch.n_libraries, memory_order_acquire);

    for (unsigned i = 0; i < n; i++) {
        const struct library *library = &watch.libraries[i];

        if (routine >= library->begin && routine < library->end && !(library->shared && is_in_file(instruction)))
            return library;
    }
    return NULL;
}

static void report(int signal, const siginfo_t *info, const struct library *library)
{
    const unsigned i = atomic_fetch_add(&watch.n_reports, 1);

    if (i >= REPORTS_MAX)
        return;
    watch.reports[i].signal = signal;
    watch.reports[i].code = info->si_code;
    watch.reports[i].address = (uintptr_t)info->si_addr;
    watch.reports[i].library = library;
    atomic_store_explicit(&watch.reports[i].is_complete, true, memory_order_release);
    sem_post(&watch.reported);
}

static void sleep_for_ever(void)
{
    sigset_t all;

    sigfillset(&all);
    for (;;)
        sigsuspend(&all);
}

static bool is_handler(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* The signals that are blocked while a handler runs: those of the interrupted code, the handler's mask, and the signal itself. */
static void block_as_for(const struct sigaction *action, int signal, const ucontext_t *state)
{
    sigset_t blocked = action->sa_mask;

    for (int i = 1; i < NSIG; i++)
        if (sigismember(&state->uc_sigmask, i) == 1)
            sigaddset(&blocked, i);
    if (!(action->sa_flags & SA_NODEFER))
        sigaddset(&blocked, signal);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
}

/* What would have happened without this handler. The default action is to end the process: with that action restored, a faulting
 * instruction runs again when the handler returns, and a signal that was sent is sent again. */
static void pass_on(int signal, siginfo_t *info, void *user, struct sigaction *before)
{
    const struct sigaction action = *before;
    const bool was_sent = info->si_code <= 0;

    if (is_handler(&action)) {
        if (action.sa_flags & (int)SA_RESETHAND)
            *before = (struct sigaction){.sa_handler = SIG_DFL};
        block_as_for(&action, signal, user);
        if (action.sa_flags & SA_SIGINFO)
            action.sa_sigaction(signal, info, user);
        else
            action.sa_handler(signal);
    } else if (action.sa_handler == SIG_DFL || !was_sent) { /* a fault cannot be ignored */
        sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        if (was_sent)
            raise(signal); /* delivered when the handler returns */
    }
}

static void handle(int signal, siginfo_t *info, void *user)
{
    const int error = errno;
    const struct library *library;

    if (signal == SIGSEGV && (ct_host_watch_takes(info, user, instruction_of(info, user)) || ct_flushing_threads_takes(info, user))) {
        errno = error;
        return;
    }
    library = info->si_code > 0 ? library_of_thread_or_null(instruction_of(info, user)) : NULL;

    if (library)
        report(signal, info, library);
    if (library || (info->si_code > 0 && ct_exit_is_limited() && !is_in_file(instruction_of(info, user))))
        sleep_for_ever();
    for (unsigned i = 0; i < N_SIGNALS; i++)
        if (signals[i] == signal)
            pass_on(signal, info, user, &watch.before[i]);
    errno = error;
}

/* ---- reports ---- */

static CUresult error_of(const struct report *report)
{
    static const struct {
        int signal, code; /* code 0: any */
        CUresult error;
    } rows[] = {
        {SIGBUS, BUS_ADRALN, CUDA_ERROR_MISALIGNED_ADDRESS},
        {SIGSEGV, 0, CUDA_ERROR_ILLEGAL_ADDRESS},
        {SIGBUS, 0, CUDA_ERROR_ILLEGAL_ADDRESS},
        {SIGILL, 0, CUDA_ERROR_ILLEGAL_INSTRUCTION},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].signal == report->signal && (!rows[i].code || rows[i].code == report->code))
            return rows[i].error;
    return CUDA_ERROR_LAUNCH_FAILED;
}

static void describe_place(uint64_t address, char *out, size_t size)
{
    struct ct_range range;

    if (!ct_address_find_nearest(address, address, UINT64_MAX, &range))
        snprintf(out, size, "there are no allocations");
    else if (ct_range_distance(&range, address, address) == 0)
        snprintf(out, size, "it is byte %llu of the %s of %llu bytes at 0x%llx%s", (unsigned long long)(address - range.start),
                 range.kind == CT_RANGE_VIRTUAL ? "reservation" : "allocation", (unsigned long long)range.size_bytes,
                 (unsigned long long)range.start, range.kind == CT_RANGE_VIRTUAL ? "" : ", which does not permit this access");
    else
        snprintf(out, size, "the nearest allocation has %llu bytes at 0x%llx and %s %llu bytes %s it", (unsigned long long)range.size_bytes,
                 (unsigned long long)range.start, address < range.start ? "begins" : "ends",
                 (unsigned long long)ct_range_distance(&range, address, address), address < range.start ? "behind" : "before");
}

static void log_fault(const struct report *report, struct ct_device *device, CUresult error)
{
    char names[NAMES_BYTES], place[PLACE_BYTES], line[NAMES_BYTES + PLACE_BYTES + 128];

    ct_running_describe(device, names, sizeof names);
    if (error != CUDA_ERROR_ILLEGAL_ADDRESS && error != CUDA_ERROR_MISALIGNED_ADDRESS) {
        snprintf(line, sizeof line, "%s failed with signal %d at instruction 0x%llx", names, report->signal,
                 (unsigned long long)report->address);
    } else if (report->signal == SIGSEGV && report->code == SI_KERNEL) {
        snprintf(line, sizeof line, "%s accessed an address that no memory can have (the processor does not report which)", names);
    } else {
        describe_place(report->address, place, sizeof place);
        snprintf(line, sizeof line, "%s accessed the illegal address 0x%llx: %s", names, (unsigned long long)report->address, place);
    }
    ct_log(CT_LOG_ERROR, "%s", line);
    if (error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_MISALIGNED_ADDRESS)
        ct_log(CT_LOG_ERROR, "`cuttle check -- PROGRAM` says which thread makes such an access, and where in the source");
    ct_coredump_write(NULL, device, line);
    ct_log(CT_LOG_ERROR, "device %d (%s) is lost for this process, since its driver cannot end a kernel: all calls return error %d",
           device->ordinal, device->info.name, (int)error);
}

/* All devices whose kernels these threads execute are lost. */
static void handle_report(const struct report *report)
{
    const CUresult error = error_of(report);

    for (unsigned i = 0; i < ct_process.n_devices; i++) {
        struct ct_device *device = &ct_process.devices[i];

        if (!device->info.thread_library || strcmp(device->info.thread_library, report->library->name) != 0 ||
            !atomic_load_explicit(&device->watched, memory_order_acquire) || atomic_load(&device->lost) != CUDA_SUCCESS)
            continue;
        log_fault(report, device, error);
        ct_device_give_up(device, error);
    }
}

static void *report_faults(void *unused)
{
    (void)unused;
    for (unsigned done = 0; done < REPORTS_MAX;) {
        if (!atomic_load_explicit(&watch.reports[done].is_complete, memory_order_acquire)) {
            sem_wait(&watch.reported);
            continue;
        }
        if (ct_shutdown_guard_enter()) {
            handle_report(&watch.reports[done]);
            ct_shutdown_guard_leave();
        }
        done++;
    }
    return NULL;
}

/* ---- set-up ---- */

struct search {
    size_t offset; /* 0: not found */
};

/* The index of two words, or 0. The first words of `words` are never those. */
static size_t find_pair(void *const *words, size_t count, const void *first, const void *second)
{
    for (size_t i = 1; i + 1 < count; i++)
        if (words[i] == first && words[i + 1] == second)
            return i;
    return 0;
}

#ifdef __SANITIZE_ADDRESS__
/* AddressSanitizer starts threads by a routine of its own, whose argument is an object in pages of its own that contains the thread's routine and
 * argument. (That of GCC 14 keeps them elsewhere; there nothing is watched.) What looks like such a pair may be a number, so the object is read by
 * process_vm_readv, which returns an error where there is no memory. */
static bool is_in_wrapper(const void *wrapper, void *object, const void *routine, const void *argument)
{
    void *words[WRAPPER_BYTES / sizeof(void *)];
    const struct iovec local = {words, sizeof words}, remote = {object, sizeof words};
    Dl_info info;
    size_t index;

    if (!object || (uintptr_t)object % 4096 || !dladdr(wrapper, &info) ||
        process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)sizeof words)
        return false;
    index = find_pair(words, WRAPPER_BYTES / sizeof(void *), routine, argument);
    watch.wrapper = wrapper;
    watch.inner_offset = index * sizeof(void *);
    return index != 0;
}
#endif

static void *find_offset(void *argument)
{
    struct search *search = argument;
    void *const *words = (void *const *)pthread_self();
    const size_t count = DESCRIPTOR_BYTES / sizeof *words;

    search->offset = find_pair(words, count, (const void *)find_offset, argument) * sizeof *words;
#ifdef __SANITIZE_ADDRESS__
    for (size_t i = 1; i + 1 < count && !search->offset; i++)
        if (is_in_wrapper(words[i], words[i + 1], (const void *)find_offset, argument))
            search->offset = i * sizeof *words;
#endif
    return NULL;
}

static bool find_routine_offset(void)
{
    struct search search = {0};
    pthread_t thread;

    if (ct_thread_start(&thread, find_offset, &search) != 0)
        return false;
    pthread_join(thread, NULL);
    watch.routine_offset = search.offset;
    if (!search.offset)
        ct_log(CT_LOG_INFO, "faults of kernels are not caught: the start routines of threads are not known to this C library");
    return search.offset != 0;
}

/* Takes over a signal. A handler that was there keeps its alternate stack, or its lack of one. */
static void install(unsigned i)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART}, before;

    sigemptyset(&action.sa_mask);
    sigaction(signals[i], NULL, &before);
    if ((before.sa_flags & SA_SIGINFO) && before.sa_sigaction == handle)
        return;
    watch.before[i] = before;
    if (is_handler(&before))
        action.sa_flags = SA_SIGINFO | (before.sa_flags & (SA_ONSTACK | SA_RESTART));
    sigaction(signals[i], &action, NULL);
}

bool ct_kernel_faults_take_over_again(void)
{
    bool is_installed;

    ct_mutex_lock(&watch.lock);
    is_installed = watch.is_installed;
    for (unsigned i = 0; i < N_SIGNALS && is_installed; i++)
        if (signals[i] == SIGSEGV)
            install(i);
    ct_mutex_unlock(&watch.lock);
    return is_installed;
}

static bool start_locked(void)
{
    pthread_t thread;

    if (watch.is_installed)
        return true;
    if (sem_init(&watch.reported, 0, 0) != 0 || !find_routine_offset() || ct_thread_start(&thread, report_faults, NULL) != 0)
        return false;
    pthread_detach(thread);
    for (unsigned i = 0; i < N_SIGNALS; i++)
        install(i);
    watch.is_installed = true;
    return true;
}

static bool is_known_locked(uintptr_t begin)
{
    for (unsigned i = 0; i < atomic_load_explicit(&watch.n_libraries, memory_order_relaxed); i++)
        if (watch.libraries[i].begin == begin)
            return true;
    return false;
}

static void add_library_locked(const struct library *library)
{
    const unsigned n = atomic_load_explicit(&watch.n_libraries, memory_order_relaxed);

    if (is_known_locked(library->begin))
        return;
    if (n == LIBRARIES_MAX) {
        ct_log(CT_LOG_WARN, "faults of kernels in threads of %s are not caught: too many libraries", library->name);
        return;
    }
    watch.libraries[n] = *library;
    atomic_store_explicit(&watch.n_libraries, n + 1, memory_order_release);
}

static int add_object(struct dl_phdr_info *object, size_t size, void *user)
{
    const struct ct_device_info *info = user;
    const char *slash = strrchr(object->dlpi_name, '/'), *name = slash ? slash + 1 : object->dlpi_name;

    (void)size;
    if (strncmp(name, info->thread_library, strlen(info->thread_library)) != 0)
        return 0;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X))
            add_library_locked(&(struct library){info->thread_library, begin, begin + segment->p_memsz, info->shared_threads});
    }
    return 0;
}

static void add_libraries_locked(const struct ct_device_info *info)
{
    const uintptr_t routine = (uintptr_t)info->thread_routine;

    (void)dl_iterate_phdr(add_object, (void *)info);
    if (routine)
        add_library_locked(&(struct library){info->thread_library, routine, routine + 1, info->shared_threads});
}

void ct_kernel_faults_watch_locked(struct ct_device *device)
{
    const bool has_threads = device->info.kind == CT_DEVICE_CPU && device->info.thread_library;
    const bool has_watches = ct_config()->check && ct_config()->check_host;

    if (!ct_config()->catch_faults || (!has_threads && !has_watches))
        return;
    ct_mutex_lock(&watch.lock);
    if (start_locked()) {
        if (has_threads)
            add_libraries_locked(&device->info);
        atomic_store_explicit(&device->watched, true, memory_order_release);
    }
    ct_mutex_unlock(&watch.lock);
}
