/* SPDX-License-Identifier: Apache-2.0 */
/* ptx2spv: the PTX to SPIR-V compiler as a library.
 *
 * A module is parsed once (syntax, symbols, the image of its variables); kernels are compiled from it one at a time, each for
 * one target. The library knows no CUDA object and no GPU API, keeps no global state, never aborts, and gives the same bytes
 * for the same input. A module may be used by several threads at once: compiling does not change it. */
#ifndef CUTTLE_PTX2SPV_H
#define CUTTLE_PTX2SPV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever the output for some input may change; part of every cache key. */
#define PTX2SPV_VERSION 1

enum ptx2spv_status {
    PTX2SPV_OK = 0,
    PTX2SPV_INVALID_PTX,         /* not PTX, or against a rule of the PTX ISA */
    PTX2SPV_UNSUPPORTED,         /* PTX that this version does not compile; the diagnostic names it */
    PTX2SPV_UNSUPPORTED_VERSION, /* .version newer than we know */
    PTX2SPV_NOT_FOUND,           /* no kernel of that name or index */
    PTX2SPV_OUT_OF_MEMORY,
    PTX2SPV_TARGET_LACKS,        /* the kernel needs a feature or a limit that the target has not */
    PTX2SPV_INTERNAL,            /* our own fault: a verifier or an assertion failed */
    PTX2SPV_UNDEFINED,           /* a function or variable is used and defined nowhere */
    PTX2SPV_MULTIPLY_DEFINED,    /* a name is defined twice, or in ways that do not fit */
};

enum ptx2spv_severity { PTX2SPV_ERROR, PTX2SPV_WARNING, PTX2SPV_INFO };

/* A message about the source. `text` ends with NUL and lives only during the callback. line and column count from 1; 0 is unknown. */
struct ptx2spv_diagnostic {
    enum ptx2spv_severity severity;
    enum ptx2spv_status status; /* the cause, for errors */
    unsigned line, column;
    const char *text;
    const char *name; /* of the input, as the linker was told it; NULL: none */
};
typedef void (*ptx2spv_diagnostic_fn)(void *user, const struct ptx2spv_diagnostic *diagnostic);
/* Receives the IR after the passes named in `dump`; text as above. */
typedef void (*ptx2spv_dump_fn)(void *user, const char *pass, const char *text);

struct ptx2spv_options {
    ptx2spv_diagnostic_fn on_diagnostic; /* may be NULL */
    ptx2spv_dump_fn on_dump;             /* may be NULL */
    void *user;
    const char *dump; /* comma-separated pass names, or "all", or NULL */
    bool cooperative; /* ptx2spv_kernel_compile: for cooperative launches, see struct ptx2spv_grid; elsewhere not looked at */
};

enum ptx2spv_dialect {
    PTX2SPV_VULKAN, /* Shader, PhysicalStorageBuffer64, VulkanMemoryModel, structured control flow */
    PTX2SPV_OPENCL, /* Kernel, Addresses, Physical64; to be built with -cl-std=CL3.0 */
};

/* How a CUDA pointer H becomes the address that the device takes. */
enum ptx2spv_pointer_rule {
    PTX2SPV_POINTER_SAME,    /* device = H */
    PTX2SPV_POINTER_OR,      /* device = H | pointer_mask */
    PTX2SPV_POINTER_WINDOWS, /* device = H + distance of the window that holds H, if one does */
};

/* A range of host addresses and what lies between it and the device's, modulo 2^64. What counts is the address in the register, before a
 * constant offset: it may lie some way off the object, so nothing else should lie near the edges, and windows are best made wider than
 * their memory. */
struct ptx2spv_window {
    uint64_t base, size_bytes, distance;
};
#define PTX2SPV_WINDOWS_MAX 8

enum ptx2spv_warp_form {
    PTX2SPV_WARP_NATIVE,     /* subgroup instructions, right in divergent code */
    PTX2SPV_WARP_COLLECTIVE, /* exchange through work-group memory */
};

/* How collective synchronization points are placed: see sync.h. The last two are for tests. */
enum ptx2spv_sync_form {
    PTX2SPV_SYNC_CHEAPEST,   /* in place, else predicated, else resumed */
    PTX2SPV_SYNC_PREDICATED, /* predicated also where the whole block meets, if it can be proved right; else resumed */
    PTX2SPV_SYNC_RESUMED,    /* resumed always */
};

/* What the driver makes of an aligned access of a vector in global memory. Where it would make one of each component, words go in pairs:
 * 8 bytes are one access then, and 16 are two. Pairs need int64. */
enum ptx2spv_vectors {
    PTX2SPV_VECTORS_WHOLE,       /* one access */
    PTX2SPV_VECTORS_LOADS_SPLIT, /* LLVM: one, but loads that are not volatile may become one of each component if nothing prevents that */
    PTX2SPV_VECTORS_SPLIT,       /* llvmpipe: one of each component */
};

/* Everything about a device that the compiler may rely on. Zero means: not there. Plain data: its bytes are part of the cache key,
 * so initialize it with memset or {0} and leave no padding unset. */
struct ptx2spv_target {
    uint32_t dialect;      /* enum ptx2spv_dialect */
    uint32_t pointer_rule; /* enum ptx2spv_pointer_rule */
    uint64_t pointer_mask; /* PTX2SPV_POINTER_OR */
    uint32_t warp_form;    /* enum ptx2spv_warp_form */
    uint32_t subgroup_size;

    /* limits */
    uint32_t push_constant_bytes; /* Vulkan's maxPushConstantsSize */
    uint32_t shared_bytes;        /* work-group memory a block may have */
    uint32_t max_block_threads;

    /* features: 0 or 1 each */
    uint8_t float64, float16, int64, int16, int8;
    uint8_t storage8, storage16;               /* 8- and 16-bit accesses to global memory */
    uint8_t shared_explicit_layout;            /* aliased work-group blocks of 32 and 64 bits (OpenCL: always) */
    uint8_t shared_explicit_layout8;           /* the same of 8 bits */
    uint8_t shared_explicit_layout16;          /* the same of 16 bits */
    uint8_t atomic_int64_global, atomic_int64_shared;
    uint8_t atomic_float32_add_global, atomic_float32_add_shared;
    uint8_t atomic_float64_add_global, atomic_float64_add_shared;
    uint8_t denorm_preserve16, denorm_preserve32, denorm_preserve64; /* execution modes that may be declared */
    uint8_t rounding_rte16, rounding_rte32, rounding_rte64;
    uint8_t signed_zero_inf_nan16, signed_zero_inf_nan32, signed_zero_inf_nan64;
    uint8_t maximal_reconvergence;
    uint8_t memory_model_device_scope;
    uint8_t shader_clock_subgroup, shader_clock_device;

    /* The driver's own operation is proved exact (one correct rounding, denormals kept). Where 0 our own sequence is used. */
    uint8_t exact_fma32, exact_fma64, exact_div32, exact_div64, exact_sqrt32, exact_sqrt64;
    /* f32 subnormals survive comparison, minimum, maximum, widening and inverse roots; addition and multiplication keep them everywhere.
     * Granted by DenormPreserve, or proved of the driver: NVIDIA 580 flushes them there (measured on an H200), and in Fma too. */
    uint8_t keeps_subnormals32;
    uint8_t near_exp2; /* the driver's Exp2 is within 2^-22 (relative) wherever the result is normal; else our own sequence is used */
    uint8_t sync_form; /* enum ptx2spv_sync_form */
    uint8_t threads_in_turn; /* WARP_NATIVE on CPUs: between barriers the warps of a block run one after the other, so none may wait for
                                another, and every thread must reach every barrier */
    uint8_t exact_zeros; /* adding and dividing heed a constant zero's sign: lavapipe takes x + 0 for x (-0 too), x / 0 for undefined */
    uint8_t fma32_flushes;  /* exact_fma32 holds but for subnormals, which are taken for zeros and made zeros */
    uint8_t guards_fma32;   /* fma.rn.f32 is the driver's Fma, done again by our own sequence where subnormals may have been in play; if
                               not fma32_flushes, what is done first is made to flush as well (for tests). Needs float64 */
    uint8_t refined_sqrt32; /* one fused step makes the driver's InverseSqrt an exact f32 root; needs exact_fma32 */
    uint8_t no_predicated_loops; /* Intel's OpenCL runtime for CPUs (2026.2): of loops that threads of a block leave in different rounds, its
                                    compiler makes some that end early for all, or never: they become loops of states */
    uint8_t llvm_functions; /* PoCL 6.0: fma, roots and roundings are LLVM's own instructions, imported by their names */
    uint8_t refined_roots64; /* f64 roots and their inverses are fused steps from the driver's InverseSqrt of f32, which is within 2 units of its last
                                place: quicker there than its own, which remain for rare operands */
    uint8_t unroll_hint; /* small loops that only compute run faster where LoopControl asks to unroll them */
    uint8_t vectors; /* enum ptx2spv_vectors */
    uint8_t lockstep; /* the lanes of a warp keep step at all accesses to shared and global memory, not only where the module's .target or
                         volatile accesses ask for it (see warp_synchronous.c) */
    uint8_t loses_fneg; /* Intel's OpenCL runtime for CPUs (2026.2): in kernels with barriers LLVM's fneg must not come about (emit_signs.c) */
    uint8_t reserved[2];
    struct ptx2spv_window windows[PTX2SPV_WINDOWS_MAX]; /* PTX2SPV_POINTER_WINDOWS: none overlap; one of size 0 ends the table */
};

/* Specialization constants that every kernel declares (Vulkan). Blocks are launched one-dimensional. */
enum ptx2spv_spec_constant {
    PTX2SPV_SPEC_BLOCK_THREADS = 0, /* x*y*z: the local size in x */
    PTX2SPV_SPEC_BLOCK_X = 1,
    PTX2SPV_SPEC_BLOCK_Y = 2,
    PTX2SPV_SPEC_BLOCK_Z = 3,
    PTX2SPV_SPEC_SHARED_WORDS = 4, /* 32-bit words of work-group memory, static and dynamic part; 1 if there is no memory at all */
    PTX2SPV_SPEC_GRID_OFFSET = 5,  /* bool: ctaid = WorkgroupId + system.ctaid_offset (a grid that was split) */
    PTX2SPV_SPEC_COUNT
};

/* The first bytes of the push constants (Vulkan) or of the argument block (OpenCL). Vulkan: the CUDA parameters follow at
 * PTX2SPV_PARAMS_OFFSET when kernel_info.params_in_buffer is 0; otherwise they lie in memory at params_address. */
struct ptx2spv_system_block {
    uint64_t image_address;  /* CUDA address (H) of the module's variables: what a kernel makes of it may leave as a pointer */
    uint64_t fault_address;  /* device address of a struct ptx2spv_fault that the host reads */
    uint64_t params_address; /* CUDA address (H) of the parameter block, 16-byte aligned, if params_in_buffer */
    uint32_t nctaid[3];
    uint32_t ctaid_offset[3];
};
#define PTX2SPV_PARAMS_OFFSET 48

/* OpenCL: kernels have no specialization constants; what they need to know of the launch stands in the argument block. The kernel's
 * arguments: 0, a pointer to global memory that holds this block, 16-byte aligned, and from PTX2SPV_OPENCL_PARAMS_OFFSET on the CUDA
 * parameters (kernel_info.params_in_buffer is always 0, params_address unused); nobody writes it while the kernel runs. 1, only if
 * kernel_info.uses_shared: local memory of shared_bytes + exchange_bytes + exchange_thread_bytes * threads of the block, at least 4.
 * Groups have the dimensions of the block, or, if kernel_info.linear_block, one dimension of x*y*z work-items; there are as many groups
 * in each dimension as the grid has blocks. ctaid = group id + system.ctaid_offset. Blocks have at most 8192 threads. */
struct ptx2spv_opencl_block {
    struct ptx2spv_system_block system;
    uint32_t ntid[3];
    uint32_t shared_bytes; /* static and dynamic part together, a multiple of 4 */
};
#define PTX2SPV_OPENCL_PARAMS_OFFSET 64

/* Written by a kernel that stops with an error; the first writer of `code` wins. */
struct ptx2spv_fault {
    uint32_t code; /* enum ptx2spv_fault_code */
    uint32_t reserved[3];
};
enum ptx2spv_fault_code { PTX2SPV_FAULT_NONE = 0, PTX2SPV_FAULT_TRAP = 1, PTX2SPV_FAULT_ASSERT = 2 };

/* What device-side printf writes. A module that prints has a variable PTX2SPV_PRINT_VARIABLE of 8 bytes; before any of its kernels runs
 * the host puts the CUDA address of a ring there (0: printf gives -2). Records lie behind each other in the ring's words, modulo their
 * number; a record that starts at word w (modulo 2^32) has a first word of w + 1 in the upper half and, in the lower, how many words it
 * has, written last. Then come the format's text with its 0, in whole words, and for each conversion a word with the bits of the
 * argument, or for %s its text in whole words; a `*` takes a word, too. New records overwrite the oldest.
 * An assertion that failed leaves a record, too. Its number of words, struct ptx2spv_assertion and the first word, has the bit
 * PTX2SPV_PRINT_ASSERTION. */
#define PTX2SPV_PRINT_VARIABLE "__cuttle_print"
#define PTX2SPV_PRINT_ASSERTION 0x80000000u
struct ptx2spv_assertion {
    uint64_t message, file, function; /* CUDA addresses of texts, as a rule of the module's variables */
    uint64_t line;
    struct {
        uint32_t x;
        uint16_t y, z;
    } block, thread;
};
struct ptx2spv_print_ring {
    uint64_t words; /* CUDA address of mask + 1 64-bit words, zero at first */
    uint32_t mask;  /* a power of two, less one */
    uint32_t head;  /* where the next record begins; kernels add to it */
};

/* The heap of device-side malloc and free. A module that uses it has a variable PTX2SPV_HEAP_VARIABLE of 8 bytes; before any of its
 * kernels runs the host puts the CUDA address of a struct ptx2spv_heap there (0: malloc gives NULL). */
#define PTX2SPV_HEAP_VARIABLE "__cuttle_heap"
#define PTX2SPV_HEAP_HEADER_BYTES 2048
struct ptx2spv_heap {
    uint64_t heap;  /* CUDA address, 16-byte aligned, of PTX2SPV_HEAP_HEADER_BYTES of zeros and as many units behind them */
    uint64_t units; /* of 16 bytes; below 2^32 */
};

/* A kernel compiled with options.cooperative has one more parameter, at kernel_info.grid_param_offset: the CUDA address of this. If
 * kernel_info.grid_thread_words is not 0, its blocks may end before they are done, to wait for others: it is to be dispatched again, with
 * everything else as it was, until none waits. A block's state takes PTX2SPV_GRID_HEADER_BYTES, all of its work-group memory (what
 * PTX2SPV_SPEC_SHARED_WORDS or ptx2spv_opencl_block.shared_bytes says, exchange_bytes and exchange_thread_bytes * threads), and
 * 4 * grid_thread_words for each thread. */
#define PTX2SPV_GRID_HEADER_BYTES 4
struct ptx2spv_grid {
    uint32_t barriers[4]; /* cooperative_groups' own, zero at first: %envreg1 and %envreg2 lead there */
    uint64_t states;      /* CUDA address, 8-byte aligned, of the blocks' states; their bytes at first do not matter */
    uint64_t stride;      /* bytes from one to the next, a multiple of 8 */
    uint32_t phase;       /* 0 in the first dispatch, anything else in later ones */
    uint32_t waiting;     /* blocks that wait: to be set to 0 before each dispatch, kernels count */
};

struct ptx2spv_param {
    uint32_t offset, size, align; /* bytes, in the parameter block */
};

/* What is known of a kernel from its declaration. */
struct ptx2spv_kernel_decl {
    const char *name;
    const struct ptx2spv_param *params;
    uint32_t n_params;
    uint32_t param_bytes; /* size of the parameter block */
    uint32_t max_ntid[3]; /* .maxntid; 0 = not stated */
    uint32_t req_ntid[3]; /* .reqntid; 0 = not stated */
    uint32_t min_nctapersm, max_nreg;
};

enum ptx2spv_variable_space { PTX2SPV_VAR_GLOBAL, PTX2SPV_VAR_CONST };

struct ptx2spv_variable {
    const char *name;
    uint64_t offset, size; /* bytes, in its image */
    uint32_t align;
    uint8_t space;   /* enum ptx2spv_variable_space */
    uint8_t managed; /* .attribute(.managed): lies in the managed image */
    uint8_t external; /* .extern without a definition: size may be 0, no place in the image */
    uint8_t visible;  /* .visible, .weak or .common: may be looked up by name */
};

/* `width` bytes (4 or 8) at `offset` of an image must hold the address of variable `variable` plus `addend`. */
struct ptx2spv_relocation {
    uint64_t offset;
    int64_t addend;
    uint32_t variable;
    uint16_t width;
    uint16_t in_managed; /* of the managed image */
};

struct ptx2spv_module;

/* Parses `length` bytes of PTX text (a NUL ends it earlier). *out is untouched on failure. UNDEFINED: it uses an extern function or
 * variable that it does not define. */
enum ptx2spv_status ptx2spv_module_create(const char *text, size_t length, const struct ptx2spv_options *options,
                                          struct ptx2spv_module **out);
void ptx2spv_module_destroy(struct ptx2spv_module *module);

/* A linker makes one module of several texts. Names that are .visible, .weak, .common or .extern mean the same in all of them, others
 * belong to their text. */
struct ptx2spv_linker;
struct ptx2spv_input {
    const char *text;
    size_t length;    /* bytes; a NUL ends the text earlier */
    const char *name; /* for messages; may be NULL */
    bool on_demand;   /* left out unless it defines what others lack: a member of a library */
};
#define PTX2SPV_INPUTS_MAX 65535

/* OUT_OF_MEMORY. */
enum ptx2spv_status ptx2spv_linker_create(struct ptx2spv_linker **out);
/* Parses a text, of which a copy is kept. MULTIPLY_DEFINED: a name means something else to a text before. After a failure the linker
 * gives the same answer to everything. */
enum ptx2spv_status ptx2spv_linker_add(struct ptx2spv_linker *linker, const struct ptx2spv_input *input,
                                       const struct ptx2spv_options *options);
/* Makes the module; the linker is spent. *out is untouched on failure. UNDEFINED: something is used and nowhere defined;
 * NOT_FOUND: there is no text. */
enum ptx2spv_status ptx2spv_linker_finish(struct ptx2spv_linker *linker, const struct ptx2spv_options *options,
                                          struct ptx2spv_module **out);
void ptx2spv_linker_destroy(struct ptx2spv_linker *linker);
/* Whether input `index` became a part of the module; on_demand ones may not. */
bool ptx2spv_module_uses_input(const struct ptx2spv_module *module, unsigned index);

/* The results live as long as the module. An index out of range gives NULL. */
unsigned ptx2spv_module_kernel_count(const struct ptx2spv_module *module);
const struct ptx2spv_kernel_decl *ptx2spv_module_kernel(const struct ptx2spv_module *module, unsigned index);
unsigned ptx2spv_module_variable_count(const struct ptx2spv_module *module);
const struct ptx2spv_variable *ptx2spv_module_variable(const struct ptx2spv_module *module, unsigned index);
/* The initial bytes of all variables but the managed ones. *size_bytes may be 0; then the result may be NULL. */
const void *ptx2spv_module_image(const struct ptx2spv_module *module, uint64_t *size_bytes, uint32_t *align);
/* The same of managed variables, which lie elsewhere since host and device share them. Where there are such, kernels find their address
 * in the first 8 bytes of the module's image: whoever places the two images writes it there. */
const void *ptx2spv_module_managed_image(const struct ptx2spv_module *module, uint64_t *size_bytes, uint32_t *align);
const struct ptx2spv_relocation *ptx2spv_module_relocations(const struct ptx2spv_module *module, unsigned *count);
/* .version as major*10+minor, .target as its number (sm_75: 75), .address_size in bits. */
void ptx2spv_module_versions(const struct ptx2spv_module *module, unsigned *isa, unsigned *sm, unsigned *address_bits);

/* What is known of a kernel once it is compiled. */
struct ptx2spv_kernel_info {
    uint32_t param_bytes;
    uint8_t params_in_buffer;    /* see struct ptx2spv_system_block */
    uint8_t uses_shared;         /* has work-group memory: variables in .shared, or an exchange area */
    uint8_t uses_dynamic_shared; /* refers to an .extern .shared array */
    uint8_t linear_block;        /* launched one-dimensional, so that lanes are CUDA's lanes (Vulkan: always) */
    uint8_t uses_barrier;
    uint8_t uses_fault;
    uint32_t static_shared_bytes;
    uint32_t dynamic_shared_offset; /* where the dynamic part begins: static size rounded up to its alignment */
    uint32_t local_bytes;           /* .local memory a thread */
    uint32_t registers;             /* 32-bit words that are alive at once in a thread, at most: an estimate of its registers */
    /* Work-group memory that the kernel takes besides for exchanges between its threads: a fixed part, and for each thread of the block.
     * It counts towards the device's limit; PTX2SPV_SPEC_SHARED_WORDS does not include it. */
    uint32_t exchange_bytes, exchange_thread_bytes;
    uint32_t grid_param_offset, grid_thread_words; /* cooperative ones: see struct ptx2spv_grid */
};

/* A SPIR-V module with one entry point, "main". */
struct ptx2spv_kernel {
    uint32_t *words;
    size_t n_words;
    struct ptx2spv_kernel_info info;
};

/* Compiles kernel `index` for a target. *out is untouched on failure; free it with ptx2spv_kernel_finish. */
enum ptx2spv_status ptx2spv_kernel_compile(const struct ptx2spv_module *module, unsigned index, const struct ptx2spv_target *target,
                                           const struct ptx2spv_options *options, struct ptx2spv_kernel *out);
void ptx2spv_kernel_finish(struct ptx2spv_kernel *kernel);

/* A one-line English name of a status; never NULL. */
const char *ptx2spv_status_string(enum ptx2spv_status status);

#ifdef __cplusplus
}
#endif
#endif
