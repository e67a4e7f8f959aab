/* SPDX-License-Identifier: Apache-2.0 */
/* Large stacks for threads that a runtime starts.
 *
 * PoCL (6.0, 7.1) executes a work-group in one thread, which has the private memory of all work-items on its stack: with the usual 8 MiB, a
 * block of 256 threads with 32 KiB of local memory each ends the process. Its threads have the default size of the C library, and it starts
 * them at the first clGetDeviceIDs. Memory of a stack is taken when it is first touched, so its size costs addresses only. */
#include "cl.h"

#include "core/base/resource_limits.h"

#include <pthread.h>
#include <unistd.h>

#define STACK_BYTES (256u << 20)
#define OWN_BYTES (1u << 20) /* what the runtime itself has on it, with plenty to spare */

static size_t stack_bytes; /* that a runtime's threads have; written before the first device is described */

static size_t get_default(pthread_attr_t *attributes)
{
    size_t bytes = 0;

    if (pthread_getattr_default_np(attributes) != 0)
        return 0;
    pthread_attr_getstacksize(attributes, &bytes);
    return bytes;
}

static bool set_default(pthread_attr_t *attributes, size_t bytes)
{
    return pthread_attr_setstacksize(attributes, bytes) == 0 && pthread_setattr_default_np(attributes) == 0;
}

size_t ct_cl_stacks_enlarge(void)
{
    const long threads = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_attr_t attributes;
    const size_t before = get_default(&attributes);
    bool larger;

    stack_bytes = before;
    if (!before)
        return 0;
    larger = before < STACK_BYTES && ct_limit_allows_mapping((uint64_t)STACK_BYTES * (uint64_t)(threads > 0 ? threads : 1)) &&
             set_default(&attributes, STACK_BYTES);
    stack_bytes = larger ? STACK_BYTES : before;
    pthread_attr_destroy(&attributes);
    return larger ? before : 0;
}

void ct_cl_stacks_restore(size_t before)
{
    pthread_attr_t attributes;

    if (!before || !get_default(&attributes))
        return;
    set_default(&attributes, before);
    pthread_attr_destroy(&attributes);
}

uint64_t ct_cl_stacks_room(void)
{
    return stack_bytes > 2 * OWN_BYTES ? stack_bytes - OWN_BYTES : OWN_BYTES;
}
