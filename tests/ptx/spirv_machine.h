/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and runs emitted SPIR-V of the Vulkan dialect: an interpreter of integer kernels, from the words of the SPIR-V specification. */
#ifndef TESTS_PTX_SPIRV_MACHINE_H
#define TESTS_PTX_SPIRV_MACHINE_H

#include "ir_machine.h"

#include <stddef.h>
#include <stdint.h>

/* `size_bytes` bytes at `address` are those at `bytes`. */
struct spirv_range {
    uint64_t address;
    size_t size_bytes;
    void *bytes; /* borrowed */
};

/* What a barrier of the work-group waits for. */
enum spirv_barriers {
    SPIRV_BARRIERS_OF_ALL, /* as SPIR-V has it: every thread of the group, at one dynamic instance; else the run is wrong */
    SPIRV_BARRIERS_OF_GPU, /* for what has not ended: every subgroup, or, where its threads go on side by side, every thread */
};

/* One work-group of one dimension. */
struct spirv_run {
    uint32_t threads, subgroup_lanes; /* 1024, 128 at most */
    const uint32_t *spec;             /* by specialization constant; NULL: what the module says */
    const void *push;                 /* push constants */
    size_t push_bytes;
    const struct spirv_range *ranges;
    unsigned n_ranges;
    enum spirv_barriers barriers;
    uint64_t unwritten;   /* what variables and work-group memory hold that nobody has written, and what undefined values are */
    uint32_t schedule;    /* a seed: in which order threads run, where SPIR-V leaves it open */
    uint64_t quiet_limit; /* blocks without an event before the run is given up; 0: a million */
    bool (*on_store)(void *user, uint64_t address, uint64_t value); /* takes stores to global memory, which are the events; false: enough */
    void *user;
    char message[256]; /* what is wrong */
};
enum spirv_end { SPIRV_RETURNED, SPIRV_STOPPED /* by on_store */, SPIRV_TIRED, SPIRV_WRONG };

enum spirv_end spirv_run(const uint32_t *words, size_t n_words, struct spirv_run *run);

/* Runs a module with one thread: stores through PhysicalStorageBuffer pointers are the events, their address the offset. Fails the test on
 * instructions that the interpreter does not know. */
void run_spirv(const uint32_t *words, size_t n_words, struct trace *out);

/* Fails the test unless spirv-val (the library) takes the module for Vulkan 1.3 or OpenCL, as its head says. Does nothing where the library is not there. */
void assert_valid_spirv(const uint32_t *words, size_t n_words);

/* Keeps PTX that was compiled for the judges (tests/judge), if CUTTLE_PTX_DIR says where. */
void keep_ptx(const char *text);

/* How many instructions of an opcode a module has. */
unsigned count_spirv(const uint32_t *words, size_t n_words, uint32_t opcode);

#endif
