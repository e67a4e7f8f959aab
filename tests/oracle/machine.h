/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the oracle: the state of a grid, block, warp and thread, and the functions that the instruction families share. */
#ifndef ORACLE_MACHINE_H
#define ORACLE_MACHINE_H

#include "ptx2spv/syntax/ast.h"
#include "oracle.h"

#define ORACLE_LANES 32
#define ORACLE_BARRIERS 16

/* ---- memory ---- */

struct oracle_shadow; /* the last accesses of a byte: races.c */

/* A variable, or memory of the caller. `address` is an address of the object's own state space. */
struct oracle_object {
    enum ptx_space space; /* GLOBAL, CONST, SHARED, LOCAL, PARAM */
    bool read_only, is_owned;
    uint64_t address, size_bytes;
    uint8_t *bytes;
    struct oracle_shadow *shadow; /* one for each byte; NULL: races are not detected */
};

struct oracle_objects {
    struct oracle_object **v;
    uint32_t n, cap;
};

/* The locations of the other state spaces in the generic address space (PTX ISA, "Generic Addressing"). */
#define ORACLE_IMAGE_BASE UINT64_C(0x0100000000000000)
#define ORACLE_FUNCTION_BASE UINT64_C(0x0200000000000000)
#define ORACLE_SHARED_WINDOW UINT64_C(0x1000000000000000)
#define ORACLE_LOCAL_WINDOW UINT64_C(0x2000000000000000)
#define ORACLE_PARAM_WINDOW UINT64_C(0x3000000000000000)
#define ORACLE_WINDOW_MASK UINT64_C(0xf000000000000000)
/* Objects of functions are above this address of .local; kernel parameters are below it in .param. */
#define ORACLE_LOCAL_BASE 0x10000

/* ---- threads ---- */

typedef uint64_t oracle_register[4]; /* one word for each component; .b128: two words */

struct oracle_frame {
    struct oracle_frame *caller; /* NULL: this is the kernel's frame */
    const struct ptx_function *function;
    const struct ptx_body *body;
    const struct ptx_instruction *call; /* the caller's instruction */
    uint32_t pc;                        /* index in body->instructions */
    oracle_register *registers;
    struct oracle_object **variables, **params, **results; /* as in body and function; NULL items: without storage in this frame */
    uint32_t locals_before;                                /* number of the thread's local objects at entry */
    uint64_t local_top_before;
    bool carry; /* the condition code register's CC.CF */
};

enum oracle_wait {
    ORACLE_RUNNING,
    ORACLE_AT_WARP,    /* waits for the members of `mask` at the same instruction */
    ORACLE_AT_GROUP,   /* waits until the lanes of its warp stop: activemask, and warp instructions without .sync */
    ORACLE_AT_BARRIER, /* waits for barrier `barrier` */
    ORACLE_EXITED,
};

struct oracle_thread {
    uint32_t index; /* within the block */
    uint32_t tid[3];
    struct oracle_frame *frame;
    uint32_t depth;
    struct oracle_objects locals;
    uint64_t local_top;
    enum oracle_wait wait;
    const struct ptx_instruction *waits_at;
    uint32_t mask;                        /* AT_WARP */
    uint32_t patience;                    /* AT_GROUP: number of turns waited */
    uint32_t barrier;                     /* AT_BARRIER: number */
    uint32_t expected;                    /* AT_BARRIER: number of threads, 0: all */
    bool predicate;                       /* AT_BARRIER: the operand of .red */
    bool is_counted;                      /* AT_BARRIER: its warp has arrived */
    uint32_t *clock, *released, *pending; /* races.c; NULL: races are not detected */
};

struct oracle_barrier {
    bool is_open;      /* a warp has arrived since the barrier last completed */
    uint32_t expected; /* number of threads; 0: all */
    uint32_t arrivals; /* number of warps */
    uint32_t warps;    /* a bit for each warp that has arrived */
    bool all, any;     /* reductions of the predicates */
    uint32_t count;
    uint32_t *clock;
};

struct oracle_location { /* synchronization through memory: the clock that a strong write has released */
    uint64_t address;    /* generic */
    uint32_t *clock;
};

struct oracle_block {
    struct oracle_grid *grid;
    uint32_t ctaid[3];
    uint64_t number;
    uint32_t n_threads, n_warps;
    struct oracle_thread *threads;
    struct oracle_objects shared;
    struct oracle_object **shared_places; /* indexed like grid->module->shared */
    struct oracle_barrier barriers[ORACLE_BARRIERS];
    struct oracle_location *locations;
    uint32_t n_locations, cap_locations;
};

/* A variable of the module and its object; `object` NULL: shared, created for each block. */
struct oracle_place {
    const struct ptx_variable *variable;
    struct oracle_object *object;
};

struct oracle_module {
    struct ptx2spv_module *parsed;
    const struct ptx_module *syntax;
    struct ct_compilation compilation; /* of the bodies */
    const struct ptx_body **bodies;    /* by the functions' numbers */
    struct oracle_place *places;       /* .global and .const */
    uint32_t n_places;
    const struct ptx_variable **shared; /* .shared, arrays without size last */
    uint32_t n_shared;
    struct oracle_objects objects; /* the objects of places */
};

struct oracle_grid {
    struct oracle_module *module;
    const struct oracle_launch *launch;
    const struct ptx_function *entry;
    struct oracle_objects memory; /* the caller's ranges and the module's variables */
    struct oracle_objects params; /* indexed by parameter */
    struct oracle_result *result;
    uint64_t random;
};

/* The execution of one instruction by one thread. */
struct oracle_step {
    struct oracle_grid *grid;
    struct oracle_block *block;
    struct oracle_thread *thread;
    struct oracle_frame *frame;
    const struct ptx_instruction *insn;
    bool jumped; /* the handler has set the program counter */
};

/* Records the first failure; the grid stops. */
void oracle_fail(struct oracle_step *s, enum oracle_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
static inline bool oracle_failed(const struct oracle_step *s)
{
    return s->grid->result->status != ORACLE_OK;
}
/* As malloc and realloc; a failure ends the process, since a test cannot continue after it. */
void *oracle_zalloc(size_t count, size_t item_bytes);
void *oracle_grow(void *items, uint32_t *cap, uint32_t used, size_t item_bytes);

/* ---- memory.c ---- */
struct oracle_object *oracle_object_create(enum ptx_space space, uint64_t address, uint64_t size_bytes, bool with_shadow);
void oracle_object_destroy(struct oracle_object *object);
void oracle_objects_add(struct oracle_objects *objects, struct oracle_object *object);
void oracle_objects_finish(struct oracle_objects *objects);
/* Returns the object of a variable in the thread's context; NULL if it has none. */
struct oracle_object *oracle_place_of(struct oracle_step *s, const struct ptx_variable *variable);

enum oracle_access { ORACLE_READ = 1, ORACLE_WRITE = 2, ORACLE_STRONG = 4 };
/* Returns the bytes of an access of `size` bytes at an address of `space` (NONE: generic), aligned to `align`, after checking for bounds
 * and races; NULL after a failure. access: ORACLE_READ, ORACLE_WRITE or both, with ORACLE_STRONG if only weak accesses race with it. */
uint8_t *oracle_memory(struct oracle_step *s, enum ptx_space space, uint64_t address, unsigned size, unsigned align, int access);
/* Returns the address that a [bracketed] operand denotes. */
uint64_t oracle_address(struct oracle_step *s, const struct ptx_operand *operand);
enum ptx_space oracle_space_of_window(uint64_t generic);
/* Returns the start of a space's window in generic addresses: 0 for global and const. */
uint64_t oracle_window_of(enum ptx_space space);

/* ---- operands.c ---- */
/* Returns the bits of a source, truncated to the type's width; predicates are 0 or 1. */
uint64_t oracle_read(struct oracle_step *s, const struct ptx_operand *operand, enum ptx_type type);
/* Writes a result to a register, extended to the register's width according to the type's signedness. */
void oracle_write(struct oracle_step *s, const struct ptx_operand *operand, enum ptx_type type, uint64_t bits);
/* The same for every type, in two words; only 128-bit types use the second one. */
void oracle_read_words(struct oracle_step *s, const struct ptx_operand *operand, enum ptx_type type, uint64_t out[2]);
void oracle_write_words(struct oracle_step *s, const struct ptx_operand *operand, enum ptx_type type, const uint64_t words[2]);
uint64_t oracle_source(struct oracle_step *s, unsigned index, enum ptx_type type); /* oracle_read of operand `index` */
void oracle_result(struct oracle_step *s, enum ptx_type type, uint64_t bits);      /* oracle_write of operand 0 */
/* Returns the items of {a, b}, a|b or (a, b); for any other operand, the operand itself. */
const struct ptx_operand *oracle_items(const struct ptx_operand *operand, uint32_t *n);
uint64_t oracle_special(struct oracle_step *s, enum ptx_sreg sreg, int component);
uint64_t oracle_cut(uint64_t bits, enum ptx_type type);
int64_t oracle_signed(uint64_t bits, enum ptx_type type);
enum ptx_type oracle_type(const struct oracle_step *s, unsigned n); /* the instruction's n-th type, PTX_NONE if there is none */

/* ---- softfloat.c ---- */
enum oracle_arithmetic { ORACLE_ADD, ORACLE_MUL, ORACLE_FMA, ORACLE_DIV, ORACLE_SQRT };
double oracle_to_double(enum ptx_type type, uint64_t bits);                                        /* exact */
uint64_t oracle_from_double(enum ptx_type type, double value, enum ptx_rounding rounding);         /* one rounding; NONE is RN */
uint64_t oracle_from_double_flushed(enum ptx_type type, double value, enum ptx_rounding rounding); /* .ftz: tiny results become zero */
uint64_t oracle_compute(enum ptx_type type, enum oracle_arithmetic what, enum ptx_rounding rounding, bool flush, const uint64_t *in);
/* From the sign and magnitude of an integer. */
uint64_t oracle_from_integer(enum ptx_type type, bool negative, uint64_t magnitude, enum ptx_rounding rounding);
double oracle_integral(double value, enum ptx_rounding rounding); /* RNI, RZI, RMI, RPI or RN, RZ, RM, RP */
bool oracle_is_nan(enum ptx_type type, uint64_t bits);
uint64_t oracle_nan(enum ptx_type type); /* the canonical NaN */
uint64_t oracle_sign_bit(enum ptx_type type);
uint64_t oracle_flush(enum ptx_type type, uint64_t bits); /* a subnormal number becomes a zero of the same sign */
uint64_t oracle_saturate(enum ptx_type type, uint64_t bits);

/* ---- compare.c ---- */
bool oracle_compare(enum ptx_type type, enum ptx_compare compare, uint64_t a, uint64_t b);

/* ---- packed values ---- */
enum ptx_type oracle_element(enum ptx_type type); /* the element of f16x2, u16x2, ..; the type itself if it is not packed */

/* ---- control.c ---- */
void oracle_enter_kernel(struct oracle_step *s);
void oracle_leave(struct oracle_step *s); /* ret, or the end of the body */
void oracle_thread_exit(struct oracle_step *s);

/* ---- barrier.c, warp.c: threads that can continue since a thread of the warp has stopped ---- */
void oracle_barriers_advance(struct oracle_step *s);
void oracle_warp_advance(struct oracle_step *s, uint32_t warp);
bool oracle_groups_release(struct oracle_step *s, uint32_t warp);
static inline uint32_t oracle_lane(const struct oracle_thread *thread)
{
    return thread->index % ORACLE_LANES;
}
struct oracle_thread *oracle_thread_at(struct oracle_block *block, uint32_t warp, uint32_t lane); /* NULL: does not exist or has exited */
void oracle_resume(struct oracle_thread *thread); /* continues after the instruction at which the thread waited */

/* ---- schedule.c ---- */
void oracle_block_run(struct oracle_block *block);

/* ---- races.c: vector clocks ---- */
void oracle_clocks_create(struct oracle_block *block);
void oracle_clocks_finish(struct oracle_block *block);
/* Records an access; returns false after a race. */
bool oracle_note(struct oracle_step *s, struct oracle_object *object, uint64_t offset, unsigned size, int access);
void oracle_synchronize(struct oracle_block *block, struct oracle_thread **threads, uint32_t n); /* each with all others */
void oracle_release_to(struct oracle_block *block, struct oracle_thread *thread, uint32_t **clock);
void oracle_acquire_from(struct oracle_block *block, struct oracle_thread *thread, const uint32_t *clock);
void oracle_fence(struct oracle_step *s);
/* Synchronization by strong accesses to memory, around fences (PTX ISA, "Memory Consistency Model"). */
void oracle_strong_write(struct oracle_step *s, uint64_t generic, bool is_release, bool keeps_chain);
void oracle_strong_read(struct oracle_step *s, uint64_t generic, bool is_acquire);
void oracle_shadow_destroy(struct oracle_shadow *shadow, uint64_t n);
struct oracle_shadow *oracle_shadow_create(uint64_t n);

/* ---- instructions: a handler for each row of handlers.def ---- */
typedef void oracle_handler(struct oracle_step *s);
#define ORACLE_HANDLER(opcode, integer, floating) oracle_handler oracle_do_##integer, oracle_do_##floating;
#include "handlers.def"
/* Executes an instruction in which the threads of a warp cooperate, once all of `members` have reached it. */
void oracle_collective(struct oracle_step *s, struct oracle_thread **members, uint32_t mask);

#endif
