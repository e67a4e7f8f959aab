/* SPDX-License-Identifier: Apache-2.0 */
/* A list of modules whose kernels are still to be compiled, and detached threads that take them from it, one kernel at a time, and end when the
 * list is empty.
 *
 * A driver may compile for one block shape only. The others are guessed to be launched with the shape of the first one, within their own limits; a
 * wrong guess costs idle time. lavapipe compiles when a kernel runs for the first time, so only our own compiler works ahead there.
 *
 * Lifetimes: the list holds references to modules. While a thread compiles it is inside of ct_module_begin_ahead, so the functions, the context and
 * the device stay, and inside of the shutdown guard. */
#include "compile_ahead.h"

#include "core/base/config.h"
#include "core/base/log.h"
#include "core/base/shutdown_guard.h"
#include "core/base/thread.h"
#include "core/device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CT_CHANNEL "function"
#define MOST_THREADS 4
#define MOST_KERNELS 64 /* modules with more are libraries, of which a program uses little */
#define SHORTEST_PAUSE_NS 5000000
#define LONGEST_PAUSE_NS 640000000

struct job {
    struct job *next;
    struct ct_module *module; /* a reference */
    struct ct_launch_shape shape;
    unsigned at, n_left; /* the kernel that was taken last, and how many were not taken yet */
};

/* A kernel to be compiled. */
struct task {
    struct ct_module *module; /* a reference */
    unsigned kernel;
    struct ct_launch_shape shape;
};

static struct {
    struct ct_mutex lock;
    struct job *first, *last;
    unsigned n_threads;
} list = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_COMPILE_AHEAD)};

static unsigned most_threads(void)
{
    const int wanted = ct_config()->compile_threads;
    const long others = sysconf(_SC_NPROCESSORS_ONLN) - 1;

    if (wanted >= 0)
        return (unsigned)wanted;
    return others < 0 ? 0 : others > MOST_THREADS ? MOST_THREADS : (unsigned)others;
}

/* ---- idle processors ---- */

/* Linux counts the threads of all processes that run or could run, the calling one among them (proc_loadavg(5)). Where it cannot be asked, the
 * answer is yes. */
static bool a_processor_is_idle(void)
{
    FILE *file = fopen("/proc/loadavg", "re");
    unsigned n_running = 0;

    if (!file)
        return true;
    if (fscanf(file, "%*s %*s %*s %u", &n_running) != 1)
        n_running = 0;
    fclose(file);
    return n_running <= (unsigned long)sysconf(_SC_NPROCESSORS_ONLN);
}

static void wait_for_idle_processor(const struct ct_module *module)
{
    struct timespec pause = {0, SHORTEST_PAUSE_NS};

    if (ct_config()->compile_threads >= 0)
        return; /* as many threads as were asked for */
    while (atomic_load(&module->loaded) && !a_processor_is_idle()) {
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec < LONGEST_PAUSE_NS ? 2 * pause.tv_nsec : LONGEST_PAUSE_NS;
    }
}

/* ---- the threads ---- */

/* False: the list is empty, and the thread must end. */
static bool take(struct task *out)
{
    struct job *job, *done = NULL;

    ct_mutex_lock(&list.lock);
    if ((job = list.first) == NULL) {
        list.n_threads--;
        ct_mutex_unlock(&list.lock);
        return false;
    }
    job->at = (job->at + 1) % ptx2spv_module_kernel_count(job->module->ptx);
    *out = (struct task){job->module, job->at, job->shape};
    ct_object_retain(&job->module->object);
    if (--job->n_left == 0) {
        list.first = job->next;
        done = job;
    }
    ct_mutex_unlock(&list.lock);
    if (done)
        ct_object_release(&done->module->object);
    free(done);
    return true;
}

static uint64_t threads_of(const unsigned block[3])
{
    return (uint64_t)block[0] * block[1] * block[2];
}

/* Replaces a block that the kernel does not allow. */
static void fit_block(const struct ct_function *function, struct ct_launch_shape *shape)
{
    const uint32_t *required = function->decl->req_ntid;
    const unsigned limit = ct_function_block_limit(function);

    if (!required[0] && threads_of(shape->block) <= limit)
        return;
    for (int i = 0; i < 3; i++)
        shape->block[i] = required[0] && required[i] ? required[i] : 1;
    if (!required[0])
        shape->block[0] = limit;
}

static void compile(const struct task *task)
{
    struct ct_module *module = task->module;
    struct ct_launch_shape shape = task->shape;
    struct ct_function *function;

    if (!ct_module_begin_ahead(module))
        return;
    if (atomic_load(&module->context->device->lost) == CUDA_SUCCESS &&
        ct_module_function_at(module, task->kernel, &function) == CUDA_SUCCESS) {
        fit_block(function, &shape);
        if (ct_launch_compile(function, &shape) == CUDA_SUCCESS)
            ct_log(CT_LOG_DEBUG, "kernel %s is compiled ahead", function->decl->name);
        ct_object_release(&function->object);
    }
    ct_module_end_ahead(module);
}

static void *run(void *unused)
{
    struct task task;

    (void)unused;
    ct_thread_set_compiles_ahead();
    while (take(&task)) {
        wait_for_idle_processor(task.module);
        if (ct_shutdown_guard_enter()) {
            compile(&task);
            ct_shutdown_guard_leave();
        }
        ct_object_release(&task.module->object);
    }
    return NULL;
}

/* ---- launches ---- */

static void add(struct job *job, unsigned most)
{
    unsigned n_new = 0;

    ct_mutex_lock(&list.lock);
    if (list.first)
        list.last->next = job;
    else
        list.first = job;
    list.last = job;
    while (list.n_threads < most && n_new < job->n_left) {
        n_new++;
        list.n_threads++;
    }
    ct_mutex_unlock(&list.lock);
    for (; n_new; n_new--)
        if (ct_thread_start_detached(run, NULL) != 0) {
            ct_mutex_lock(&list.lock);
            list.n_threads--; /* the job waits for the next thread, if there is none */
            ct_mutex_unlock(&list.lock);
        }
}

void ct_compile_ahead(struct ct_function *launched, const struct ct_launch_shape *shape)
{
    struct ct_module *module = launched->module;
    const unsigned n_kernels = ptx2spv_module_kernel_count(module->ptx), most = most_threads();
    struct job *job;

    /* relaxed: the flag publishes no other data */
    if (atomic_load_explicit(&module->is_compiled_ahead, memory_order_relaxed) ||
        atomic_exchange_explicit(&module->is_compiled_ahead, true, memory_order_relaxed))
        return;
    if (most == 0 || n_kernels < 2 || n_kernels > MOST_KERNELS || (job = calloc(1, sizeof *job)) == NULL)
        return;
    ct_object_retain(&module->object);
    *job = (struct job){
        .module = module,
        .shape = {.grid = {1, 1, 1}, .block = {shape->block[0], shape->block[1], shape->block[2]}},
        .at = launched->index,
        .n_left = n_kernels - 1,
    };
    add(job, most);
}
