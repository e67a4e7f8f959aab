/* SPDX-License-Identifier: Apache-2.0 */
/* A call of every symbol of entry_points.def, for tests that ask in which situations which functions may be called. The arguments are derived from
 * the types of the parameters (FILL in every_call.c); host_function_calls.def has the arguments of functions for which the types are not
 * sufficient. With NVIDIA's driver all objects below exist; here unsupported ones remain 0, and so do the calls that would need them. */
#ifndef CUTTLE_TESTS_EVERY_CALL_H
#define CUTTLE_TESTS_EVERY_CALL_H

#include "entry_points.h"

/* The objects that calls refer to. Calls that have a stream use `stream`. */
struct every_call_objects {
    CUdevice device;
    CUcontext context;
    CUstream stream, runner; /* both non-blocking; no call uses the second */
    CUevent event, shared, timed[2];
    CUdeviceptr memory, managed, allocated, reserved, unused;
    CUmemGenericAllocationHandle physical;
    void *pinned, *pages, *registered;
    CUarray array, line;
    CUmipmappedArray mipmap;
    CUmodule module;
    CUfunction function, ramp;
    CUlibrary library;
    CUkernel kernel, ramp_kernel;
    CUmemoryPool pool;
    CUlinkState link;
    CUgraph graph, child;
    CUgraphNode empty, launch, copy, fill, host, sub, record, wait, alloc, release;
    CUgraphExec exec;
    CUtexObject texture;
    CUsurfObject surface;
    CUtexref texref;
    CUuserObject user;
    CUgraphConditionalHandle condition;
};
extern struct every_call_objects at;

struct every_call_subject {
    const char *symbol;
    unsigned row; /* index in entry_points.def; a symbol and its variants share one */
    ct_function fill;
};
extern const struct every_call_subject every_call_subjects[CT_ENTRY_POINT_COUNT];

/* Creates a context with fresh objects, and makes it current. */
bool every_call_make_objects(void);
/* Once in a process, before its children are made: the file for functions that read files. */
void every_call_make_file(void);
CUresult every_call(const struct every_call_subject *subject);

#endif
