/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter of PTX: the reference that compiled kernels are compared with. It is written from the text of the PTX ISA and shares
 * nothing with the compiler except the syntax tree. Slow and simple.
 *
 * A grid is executed block by block. The threads of a block are scheduled independently of each other (PTX ISA, "Independent Thread
 * Scheduling"); instructions of a warp synchronize the threads of their member masks, barriers synchronize warps. Arithmetic is bit-exact;
 * approximate instructions are rounded correctly, and the caller compares them within the ISA's tolerance.
 *
 * Undefined behaviour is reported instead of executed: data races, barriers and warp instructions that cannot complete, accesses outside of
 * any object. The same launch gives the same result in every run. */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oracle_status {
    ORACLE_OK,
    ORACLE_BAD_MODULE,  /* the text has a syntax error */
    ORACLE_BAD_LAUNCH,  /* no such kernel, a wrong size of the parameters, no threads */
    ORACLE_UNSUPPORTED, /* an instruction that the oracle does not implement */
    ORACLE_OUT_OF_MEMORY,
    ORACLE_OUT_OF_BOUNDS, /* an access outside of every object of its state space, or a store to read-only memory */
    ORACLE_MISALIGNED,
    ORACLE_RACE,              /* conflicting accesses of two threads that are not ordered */
    ORACLE_DIVERGENT_BARRIER, /* threads of a warp reach one .aligned barrier at different instructions */
    ORACLE_DEADLOCK,          /* no thread can continue */
    ORACLE_UNDEFINED,         /* other behaviour that PTX leaves undefined: a lane that is not in its own mask, a wrong barrier count */
    ORACLE_STEP_LIMIT,
    ORACLE_CALL_DEPTH,
    ORACLE_TRAP, /* trap, or a failed device assertion */
};
const char *oracle_status_name(enum oracle_status status);

#define ORACLE_MESSAGE_BYTES 512
struct oracle_result {
    enum oracle_status status;
    unsigned line;                      /* line in the module's text; 0: unknown */
    uint64_t steps;                     /* number of instructions executed */
    char message[ORACLE_MESSAGE_BYTES]; /* empty after ORACLE_OK */
};

/* Memory that kernels may access: the `size_bytes` bytes at kernel address `address` are stored at `bytes`. */
struct oracle_range {
    uint64_t address;
    size_t size_bytes;
    void *bytes; /* borrowed */
    bool read_only;
};

struct oracle_module;

/* Parses a module and initializes its variables. Returns NULL after an error, which *result describes. */
struct oracle_module *oracle_module_create(const char *text, struct oracle_result *result);
void oracle_module_destroy(struct oracle_module *module);

/* Returns the bytes of a .global or .const variable, for the caller to read and write between launches; NULL if there is none. */
void *oracle_module_variable(struct oracle_module *module, const char *name, size_t *size_bytes);

bool oracle_module_has_kernel(const struct oracle_module *module, const char *kernel);
/* Lays out parameters given by pointers, as cuLaunchKernel takes them. Returns their size, or 0 if it exceeds `capacity`. */
size_t oracle_module_pack_params(const struct oracle_module *module, const char *kernel, void *const *params, void *out, size_t capacity);

struct oracle_launch {
    const char *kernel;
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
    const void *params; /* the parameters, in the layout of a C struct */
    size_t params_bytes;
    const struct oracle_range *ranges;
    unsigned n_ranges;
    bool find_races;          /* detect races within a block */
    bool find_grid_races;     /* detect races between blocks too, whose accesses only atomics can order */
    bool allow_divergent;     /* allow the threads of a warp to reach an .aligned barrier at different instructions */
    bool allow_zero_division; /* division by zero gives all ones, as on NVIDIA's machines */
    uint32_t schedule;        /* 0: threads run in turn; else the seed of a random order */
    uint64_t step_limit;      /* limit for the whole grid; 0: 2^32 */
    uint32_t depth_limit;     /* limit of nested calls; 0: 256 */
};

/* Runs a grid; modifies the ranges' bytes and the module's variables. Returns result->status. */
enum oracle_status oracle_run(struct oracle_module *module, const struct oracle_launch *launch, struct oracle_result *result);

#endif
