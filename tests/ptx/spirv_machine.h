/* SPDX-License-Identifier: Apache-2.0 */
/* Validates and executes emitted SPIR-V of the Vulkan dialect: an interpreter of integer kernels, written from the text of the SPIR-V
 * specification. */
#ifndef TESTS_PTX_SPIRV_MACHINE_H
#define TESTS_PTX_SPIRV_MACHINE_H

#include "ir_machine.h"
#include "cuttle/ptx2spv.h"

#include <stddef.h>
#include <stdint.h>

/* Maps `size_bytes` bytes of device memory at `address` to the host memory at `bytes`. */
struct spirv_range {
    uint64_t address;
    size_t size_bytes;
    void *bytes; /* borrowed */
};

/* Which threads a barrier of the work-group waits for. */
enum spirv_barriers {
    SPIRV_BARRIERS_OF_ALL, /* as in SPIR-V: every thread of the group, at one dynamic instance; otherwise the run fails */
    /* as on GPUs: everything that has not ended: every subgroup or, where its threads make independent progress, every thread */
    SPIRV_BARRIERS_OF_GPU,
};

/* Cooperative matrices: the layouts of `table`, which ends with m = 0, hold for all matrices of the same size and use whose elements are floats, or integers, of the same width. multiply
 * replaces c by a b + c, for elements that are bits, row by row. */
struct spirv_matrices {
    const struct ptx2spv_matrix *table;
    void (*multiply)(const struct ptx2spv_matrix *matrix, const uint64_t *a, const uint64_t *b, uint64_t *c);
};

/* The execution of one work-group of one dimension. */
struct spirv_run {
    uint32_t threads, subgroup_lanes; /* at most 1024 and 128 */
    const uint32_t *spec;             /* values of specialization constants; NULL: the module's defaults */
    const void *push;                 /* push constants */
    size_t push_bytes;
    const struct spirv_range *ranges;
    unsigned n_ranges;
    enum spirv_barriers barriers;
    const struct spirv_matrices *matrices; /* NULL: the device has no matrix units */
    uint64_t unwritten;                    /* the value of uninitialized variables and work-group memory, and of undefined values */
    uint32_t schedule;                     /* a seed for the order of threads, as far as SPIR-V leaves it open */
    uint64_t quiet_limit;                  /* number of blocks without an event after which the run is given up; 0: a million */
    /* called for stores to global memory, which are the events; false stops the run */
    bool (*on_store)(void *user, uint64_t address, uint64_t value);
    void *user;
    char message[256]; /* describes the failure */
};
enum spirv_end { SPIRV_RETURNED, SPIRV_STOPPED /* by on_store */, SPIRV_GAVE_UP, SPIRV_WRONG };

enum spirv_end spirv_run(const uint32_t *words, size_t n_words, struct spirv_run *run);

/* Executes a module with one thread: stores through PhysicalStorageBuffer pointers are the events, with the address as offset. Fails the
 * test on instructions that the interpreter does not implement. */
void run_spirv(const uint32_t *words, size_t n_words, struct trace *out);

/* Fails the test unless spirv-val (the library) accepts the module for Vulkan 1.3 or OpenCL, as its header declares. Does nothing if the
 * library is not available. */
void assert_valid_spirv(const uint32_t *words, size_t n_words);

/* Saves compiled PTX for the judges (tests/judge) in the folder that CUTTLE_PTX_DIR names, if it is set. */
void keep_ptx(const char *text);

/* Returns the number of instructions with this opcode. */
unsigned count_spirv(const uint32_t *words, size_t n_words, uint32_t opcode);

#endif
