/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter of PTX: the reference that compiled kernels are compared with. Written from the words of the PTX ISA, it shares
 * nothing with the compiler but the syntax tree. Slow and simple.
 *
 * A grid runs block by block. The threads of a block are scheduled independently of each other (PTX ISA, "Independent Thread
 * Scheduling"); instructions of a warp meet over their member masks, barriers over warps. Arithmetic is bit-exact; approximate
 * instructions are rounded correctly, for the caller to compare with the ISA's tolerance.
 *
 * Undefined behaviour is not carried out but reported: data races, barriers and warp instructions that cannot complete, accesses
 * outside of any object. The same launch gives the same result on every run. */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oracle_status {
    ORACLE_OK,
    ORACLE_BAD_MODULE,  /* the text does not parse */
    ORACLE_BAD_LAUNCH,  /* no such kernel, parameters of another size, no threads */
    ORACLE_UNSUPPORTED, /* an instruction that the oracle does not know */
    ORACLE_OUT_OF_MEMORY,
    ORACLE_OUT_OF_BOUNDS, /* an access outside of every object of its state space, or a store to read-only memory */
    ORACLE_MISALIGNED,
    ORACLE_RACE,              /* conflicting accesses of two threads that nothing orders */
    ORACLE_DIVERGENT_BARRIER, /* threads of a warp meet one .aligned barrier at different instructions */
    ORACLE_DEADLOCK,          /* no thread can go on */
    ORACLE_UNDEFINED,         /* other behaviour that PTX leaves undefined: a lane outside of its mask, a barrier of wrong count */
    ORACLE_STEP_LIMIT,
    ORACLE_CALL_DEPTH,
    ORACLE_TRAP, /* trap, or a failed device assertion */
};
const char *oracle_status_name(enum oracle_status status);

#define ORACLE_MESSAGE_BYTES 512
struct oracle_result {
    enum oracle_status status;
    unsigned line;                      /* in the module's text; 0 unknown */
    uint64_t steps;                     /* instructions executed */
    char message[ORACLE_MESSAGE_BYTES]; /* empty after ORACLE_OK */
};

/* Memory that kernels may reach: `size_bytes` bytes at kernel address `address` are those at `bytes`. */
struct oracle_range {
    uint64_t address;
    size_t size_bytes;
    void *bytes; /* borrowed */
    bool read_only;
};

struct oracle_module;

/* Parses a module and initializes its variables. NULL after an error, which *result tells. */
struct oracle_module *oracle_module_create(const char *text, struct oracle_result *result);
void oracle_module_destroy(struct oracle_module *module);

/* The bytes of a .global or .const variable, for the caller to read and write between launches. NULL if there is none. */
void *oracle_module_variable(struct oracle_module *module, const char *name, size_t *size_bytes);

bool oracle_module_has_kernel(const struct oracle_module *module, const char *kernel);
/* Lays out parameters given by pointers, as cuLaunchKernel takes them. Returns their size, 0 if it is above `capacity`. */
size_t oracle_module_pack_params(const struct oracle_module *module, const char *kernel, void *const *params, void *out, size_t capacity);

struct oracle_launch {
    const char *kernel;
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
    const void *params; /* the parameters, each at its natural alignment, as a C struct */
    size_t params_bytes;
    const struct oracle_range *ranges;
    unsigned n_ranges;
    bool find_races;          /* within a block */
    bool find_grid_races;     /* also between blocks, whose accesses nothing but atomics can order */
    bool allow_divergent;     /* .aligned barriers may be met at different instructions of a warp */
    bool allow_zero_division; /* all ones, as on NVIDIA's machines */
    uint32_t schedule;        /* 0: threads in turn; else the seed of a random order */
    uint64_t step_limit;      /* of the whole grid; 0: 2^32 */
    uint32_t depth_limit;     /* of calls; 0: 256 */
};

/* Runs a grid; changes the ranges' bytes and the module's variables. Returns result->status. */
enum oracle_status oracle_run(struct oracle_module *module, const struct oracle_launch *launch, struct oracle_result *result);

#endif
