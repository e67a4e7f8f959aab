/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the SPIR-V interpreter (spirv_machine.h): a decoded module, and the values of all threads of a work-group.
 *
 *   spirv_program.c     types, constants, the layout of values
 *   spirv_evaluate.c    arithmetic of one thread
 *   spirv_memory.c      pointers, loads, stores, atomics
 *   spirv_matrix.c      cooperative matrices
 *   spirv_group.c       scheduling of threads: control flow, subgroups, barriers */
#ifndef TESTS_PTX_SPIRV_PROGRAM_H
#define TESTS_PTX_SPIRV_PROGRAM_H

#include "spirv_machine.h"
#include "ptx2spv/spirv/spirv_newer.h"

#define SPV_ENABLE_UTILITY_CODE
#include <spirv/unified1/spirv.h>
#include <stddef.h>
#include <stdint.h>

#define SPIRV_MEMBERS_MAX 80

struct spirv_id {
    const uint32_t *def; /* the defining instruction; NULL: none */
    uint32_t type;       /* of a value: the id of its type */
    /* of a type: bits and number of its components (a pointer has one of 64 bits); the element type of an array, a pointer or a vector */
    unsigned bits, count;
    uint32_t element, storage;
    const struct ptx2spv_matrix *matrix; /* of the type of a cooperative matrix: a row of the run's table, */
    unsigned use;                        /* and enum ptx2spv_matrix_use */
    /* decorations */
    uint32_t array_stride, builtin, spec_id;
    uint16_t offsets[SPIRV_MEMBERS_MAX]; /* of a struct's members */
    bool is_spec;
    /* of a value: component c of thread t lies at[c * part_step + t * thread_step] */
    uint64_t *at;
    uint32_t part_step, thread_step;
};

struct spirv_program {
    const uint32_t *words, *end, *entry; /* entry: the first block's label */
    struct spirv_run *run;
    struct spirv_id *ids;
    uint64_t *values, *locals; /* locals: function variables, by slot, then thread */
    uint8_t *shared;
    uint64_t shared_bytes;
    uint64_t quiet; /* number of blocks executed since the last event */
    bool stopped;   /* by the run's on_store */
};

/* Decodes a module for the run's threads. spirv_program_finish frees the tables, also after a failure. */
bool spirv_program_init(struct spirv_program *p, const uint32_t *words, size_t n_words, struct spirv_run *run);
void spirv_program_finish(struct spirv_program *p);

/* Records the first error, for the caller of the run; returns false. */
bool spirv_wrong(struct spirv_program *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline uint32_t spirv_op(const uint32_t *w)
{
    return w[0] & SpvOpCodeMask;
}

static inline uint32_t spirv_length(const uint32_t *w)
{
    return w[0] >> SpvWordCountShift;
}

static inline const struct spirv_id *spirv_type(const struct spirv_program *p, uint32_t id)
{
    return &p->ids[p->ids[id].type];
}

static inline uint64_t *spirv_part(const struct spirv_program *p, uint32_t id, unsigned part, unsigned thread)
{
    const struct spirv_id *value = &p->ids[id];

    return &value->at[part * value->part_step + thread * value->thread_step];
}

static inline uint64_t spirv_read(const struct spirv_program *p, uint32_t id, unsigned thread)
{
    return *spirv_part(p, id, 0, thread);
}

static inline uint64_t spirv_mask(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static inline int64_t spirv_signed(uint64_t value, unsigned bits)
{
    return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

uint32_t spirv_bytes(const struct spirv_program *p, uint32_t type); /* The size of a scalar, a vector or an array in memory. */

/* Computes the instruction's result for one thread from its operands. */
bool spirv_evaluate(struct spirv_program *p, const uint32_t *w, unsigned thread);

/* Executes an instruction that concerns memory: a pointer computation or an access. */
bool spirv_access(struct spirv_program *p, const uint32_t *w, unsigned thread);

/* The memory at an address of global memory; NULL, with a message, if it is none of the run. */
uint8_t *spirv_find_global(struct spirv_program *p, uint64_t address, uint32_t bytes);

/* The opcodes of SPV_KHR_cooperative_matrix. */
static inline bool spirv_is_matrix_op(uint32_t op)
{
    return op >= CT_SPV_OP_TYPE_COOPERATIVE_MATRIX_KHR && op <= CT_SPV_OP_COOPERATIVE_MATRIX_LENGTH_KHR;
}
bool spirv_declare_matrix(struct spirv_program *p, const uint32_t *w, struct spirv_id *type);
/* Executes an instruction with a matrix for the 32 threads from `first` on, which are a subgroup. */
bool spirv_execute_matrix(struct spirv_program *p, const uint32_t *w, unsigned first);

#endif
