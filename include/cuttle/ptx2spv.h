/* SPDX-License-Identifier: Apache-2.0 */
/* ptx2spv: the PTX to SPIR-V compiler as a library.
 *
 * A module is parsed once (syntax, symbols, the image of its variables); kernels are compiled from it one at a time, each for one
 * target. The library depends on no CUDA object and no GPU API, keeps no global state, never aborts, and produces the same output for
 * the same input. Several threads may use a module at once: compiling does not change it. */
#ifndef CUTTLE_PTX2SPV_H
#define CUTTLE_PTX2SPV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when the output for existing input changes in a way that matters to users of the library. Cuttle's cache does not rely on it: its keys
 * contain the build ID of the library. */
#define PTX2SPV_VERSION 1

enum ptx2spv_status {
    PTX2SPV_OK = 0,
    PTX2SPV_INVALID_PTX,         /* not PTX, or it violates a rule of the PTX ISA */
    PTX2SPV_UNSUPPORTED,         /* PTX that this version does not support; the diagnostic names it */
    PTX2SPV_UNSUPPORTED_VERSION, /* a .version that is newer than this compiler */
    PTX2SPV_NOT_FOUND,           /* no kernel of that name or index */
    PTX2SPV_OUT_OF_MEMORY,
    PTX2SPV_TARGET_LACKS,     /* the kernel needs a feature that the target lacks, or exceeds one of its limits */
    PTX2SPV_INTERNAL,         /* a fault of the compiler: a verifier or an assertion failed */
    PTX2SPV_UNDEFINED,        /* a function or variable is used and not defined */
    PTX2SPV_MULTIPLY_DEFINED, /* a name is defined twice, or its declarations conflict */
};

enum ptx2spv_severity { PTX2SPV_ERROR, PTX2SPV_WARNING, PTX2SPV_INFO };

/* A message about the source. `text` is NUL-terminated and valid only during the callback. Lines and columns count from 1; 0 is unknown. */
struct ptx2spv_diagnostic {
    enum ptx2spv_severity severity;
    enum ptx2spv_status status; /* the cause, for errors */
    unsigned line, column;
    const char *text;
    const char *name; /* the name of the input, as given to the linker; NULL: none */
};
typedef void (*ptx2spv_diagnostic_fn)(void *user, const struct ptx2spv_diagnostic *diagnostic);
/* Receives the IR after each of the passes named in `dump`; `text` as above. */
typedef void (*ptx2spv_dump_fn)(void *user, const char *pass, const char *text);

/* Where shared memory is: in the device's work-group memory, or in device memory (struct ptx2spv_slots). */
enum ptx2spv_shared_form {
    PTX2SPV_SHARED_NATIVE,    /* work-group memory; a kernel with more static shared memory than that is refused with TARGET_LACKS */
    PTX2SPV_SHARED_AS_NEEDED, /* device memory if the static part exceeds the device's work-group memory, or if that is faster */
    PTX2SPV_SHARED_IN_MEMORY, /* device memory, if the kernel has shared memory */
};

#define PTX2SPV_STACK_BYTES 2048u /* the default of ptx2spv_options.stack_bytes */
#define PTX2SPV_INLINE_MAX 20000u /* the default of ptx2spv_options.inline_max */

struct ptx2spv_options {
    ptx2spv_diagnostic_fn on_diagnostic; /* may be NULL */
    ptx2spv_dump_fn on_dump;             /* may be NULL */
    void *user;
    const char *dump; /* comma-separated pass names, or "all", or NULL */
    bool cooperative; /* for ptx2spv_kernel_compile: compile for cooperative launches, see struct ptx2spv_grid; ignored elsewhere */
    bool clusters;    /* with cooperative: compile for clusters of several blocks; their shared memory is in device memory */
    enum ptx2spv_shared_form shared_form; /* for ptx2spv_kernel_compile */
    /* For ptx2spv_kernel_compile: what a thread has for activations of recursive functions, besides one of each; 0: PTX2SPV_STACK_BYTES. */
    uint32_t stack_bytes;
    /* For ptx2spv_kernel_compile: PTX instructions that a kernel may have with all calls inlined. Of a kernel that would have more, functions
     * that are called from several places have one instance each, if its threads execute no instruction together; 0: PTX2SPV_INLINE_MAX. */
    uint32_t inline_max;
    bool any_grid;       /* for ptx2spv_kernel_compile: kernel_info.limits_grid, limits_objects and whole_warps will be 0 */
    bool probe_matrices; /* for ptx2spv_kernel_compile: the kernel does what struct ptx2spv_matrix_probe says, whatever its text is */
    bool check;          /* for ptx2spv_kernel_compile: check the kernel's accesses to memory, see struct ptx2spv_check */
    bool check_races;    /* with check: also for races in shared memory; kernel_info.checks_races says whether that was possible */
    bool check_blocks;   /* with check: also for races in global memory within a launch */
    bool check_written;  /* with check: also for reads of memory that was never written */
    bool
        check_launches; /* with check: note which launch accessed what, as far as memory has shadows for that; kernel_info.checks_launches */
};

enum ptx2spv_dialect {
    PTX2SPV_VULKAN, /* Shader, PhysicalStorageBuffer64, VulkanMemoryModel, structured control flow */
    PTX2SPV_OPENCL, /* Kernel, Addresses, Physical64; to be built with -cl-std=CL3.0 */
};

/* How a CUDA pointer H is translated to a device address. */
enum ptx2spv_pointer_rule {
    PTX2SPV_POINTER_SAME,    /* device = H */
    PTX2SPV_POINTER_OR,      /* device = H | pointer_mask */
    PTX2SPV_POINTER_WINDOWS, /* device = H + distance of the window that contains H, if there is one */
};

/* A range of host addresses and its distance to the device's addresses, modulo 2^64. The address in the register decides, before a
 * constant offset is added: it may be some way off the object, so no other memory should be near the edges of a window, and windows
 * should be wider than their memory. */
struct ptx2spv_window {
    uint64_t base, size_bytes, distance;
};
#define PTX2SPV_WINDOWS_MAX 8

enum ptx2spv_warp_form {
    PTX2SPV_WARP_NATIVE,     /* subgroup instructions, which are correct in divergent code */
    PTX2SPV_WARP_COLLECTIVE, /* exchange through work-group memory */
};

/* How collective synchronization points are implemented: see sync.h. The last two are for tests. */
enum ptx2spv_sync_form {
    PTX2SPV_SYNC_CHEAPEST,   /* in place if possible, else predicated, else resumed */
    PTX2SPV_SYNC_PREDICATED, /* predicated if it can be proved correct, also where the whole block synchronizes; else resumed */
    PTX2SPV_SYNC_RESUMED,    /* always resumed */
};

/* VULKAN: which addresses are a parameter plus a zero-extended offset of 32 bits, as far as they can be; see PTX2SPV_OBJECT_LIMIT. */
enum ptx2spv_offsets {
    PTX2SPV_OFFSETS_LONG,        /* none */
    PTX2SPV_OFFSETS_SHORT,       /* all: the device adds the offset in the access */
    PTX2SPV_OFFSETS_SHORT_FIXED, /* all but those of pointers that a loop moves: to add an offset in each iteration takes longer than to move the
                                    pointer */
};

/* How the driver compiles an aligned access to a vector in global memory. If it would make one access of each component, words are
 * accessed in pairs: 8 bytes are then one access, and 16 bytes are two. Pairs need int64. */
enum ptx2spv_vectors {
    PTX2SPV_VECTORS_WHOLE,       /* one access */
    PTX2SPV_VECTORS_LOADS_SPLIT, /* LLVM: one access, but a non-volatile load may be split into one of each component unless that is
                                    prevented */
    PTX2SPV_VECTORS_SPLIT,       /* llvmpipe: one access of each component */
};

/* Faults of drivers that the compiler works around: bits of ptx2spv_target.workarounds. The table says which, and whose. */
enum ptx2spv_workaround_index {
#define COMPILER(id, name, drivers, first, last, fault, proof, test) PTX2SPV_WORKAROUND_INDEX_##id,
#include "workarounds.def"
    PTX2SPV_WORKAROUND_COUNT
};
enum ptx2spv_workaround {
#define COMPILER(id, name, drivers, first, last, fault, proof, test) PTX2SPV_WORKAROUND_##id = 1 << PTX2SPV_WORKAROUND_INDEX_##id,
#include "workarounds.def"
    PTX2SPV_WORKAROUNDS = (1 << PTX2SPV_WORKAROUND_COUNT) - 1 /* all of them */
};

/* Products of matrices that a subgroup of 32 lanes computes as one operation (Vulkan: VK_KHR_cooperative_matrix). */
enum ptx2spv_matrix_element {
    PTX2SPV_MATRIX_NONE,
    PTX2SPV_MATRIX_F16,
    PTX2SPV_MATRIX_BF16,
    PTX2SPV_MATRIX_F32,
    PTX2SPV_MATRIX_S8,
    PTX2SPV_MATRIX_U8,
    PTX2SPV_MATRIX_S32,
    PTX2SPV_MATRIX_U32,
};
static inline unsigned ptx2spv_matrix_element_bits(unsigned element)
{
    return element == PTX2SPV_MATRIX_S8 || element == PTX2SPV_MATRIX_U8      ? 8
           : element == PTX2SPV_MATRIX_F16 || element == PTX2SPV_MATRIX_BF16 ? 16
                                                                             : 32;
}
enum ptx2spv_matrix_use { PTX2SPV_MATRIX_A, PTX2SPV_MATRIX_B, PTX2SPV_MATRIX_C /* and D */, PTX2SPV_MATRIX_USES };
/* Which lane holds which element of a matrix, and in which of its components. Each string lists the bits of a coordinate, the lowest first: a digit
 * is a bit of the lane's number, a letter from `a` on is a bit of the component's number. Lanes that differ only in bits that no coordinate has
 * hold the same elements. "": not known, the matrix is not used. */
struct ptx2spv_matrix_layout {
    char row[8], column[8];
};
struct ptx2spv_matrix {
    uint8_t m, n, k;                         /* A has m rows and k columns, B k and n, C m and n; powers of two; 0 ends the table */
    uint8_t factor, sum;                     /* enum ptx2spv_matrix_element: of A and B; of C and D */
    uint8_t components[PTX2SPV_MATRIX_USES]; /* how many elements a lane holds; 0: not known */
    struct ptx2spv_matrix_layout layouts[PTX2SPV_MATRIX_USES];
};
#define PTX2SPV_MATRICES_MAX 12

/* Functions of f32 whose error the PTX ISA bounds, more tightly than Vulkan and OpenCL do ("Floating Point Instructions": ex2, lg2, sin and cos,
 * rsqrt, sqrt, each .approx), where arguments and results are normal. */
enum ptx2spv_near {
    PTX2SPV_NEAR_EX2 = 1 << 0,   /* relative error 2^-22 */
    PTX2SPV_NEAR_LG2 = 1 << 1,   /* 2^-22: absolute from 0.5 to 2, relative elsewhere */
    PTX2SPV_NEAR_SIN = 1 << 2,   /* sin and cos: absolute error 2^-20.5 within 2 pi, 2^-14.7 within 100 pi */
    PTX2SPV_NEAR_RSQRT = 1 << 3, /* relative error 2^-22.9 */
    PTX2SPV_NEAR_SQRT = 1 << 4,  /* relative error 2^-23, also for subnormals if they are kept */
    PTX2SPV_NEAR_COUNT = 5,
    PTX2SPV_NEAR_ALL = (1 << PTX2SPV_NEAR_COUNT) - 1,
};

/* Everything about a device that the compiler may rely on. Zero means that the feature is absent. Plain data: its bytes are part of the
 * cache key, so initialize it with memset or {0} and leave no padding unset. */
struct ptx2spv_target {
    uint32_t dialect;        /* enum ptx2spv_dialect */
    uint32_t pointer_rule;   /* enum ptx2spv_pointer_rule */
    uint64_t pointer_mask;   /* PTX2SPV_POINTER_OR */
    uint64_t register_words; /* 32-bit registers of a thread, if so few that loops had better compute values than keep them; else 0 */
    uint32_t warp_form;      /* enum ptx2spv_warp_form */
    uint32_t subgroup_size;

    /* limits */
    uint32_t push_constant_bytes; /* Vulkan's maxPushConstantsSize */
    uint32_t shared_bytes;        /* work-group memory that a block may have */
    uint32_t max_block_threads;

    uint32_t workarounds; /* set of enum ptx2spv_workaround: faults of the driver that must not show */
    /* Set of enum ptx2spv_near: the driver's functions that are as precise as PTX's approximate instructions. Our own sequences replace others. */
    uint16_t near_functions;

    /* features: 0 or 1 each */
    uint8_t float64, float16, int64, int16, int8;
    uint8_t storage8, storage16;      /* 8-bit and 16-bit accesses to global memory */
    uint8_t shared_explicit_layout;   /* aliased work-group blocks of 32 and 64 bits (OpenCL: always) */
    uint8_t shared_explicit_layout8;  /* the same of 8 bits */
    uint8_t shared_explicit_layout16; /* the same of 16 bits */
    uint8_t atomic_int64_global, atomic_int64_shared;
    uint8_t atomic_float32_add_global, atomic_float32_add_shared;
    uint8_t atomic_float64_add_global, atomic_float64_add_shared;
    uint8_t denorm_preserve16, denorm_preserve32, denorm_preserve64; /* execution modes that may be declared */
    uint8_t rounding_rte16, rounding_rte32, rounding_rte64;
    uint8_t signed_zero_inf_nan16, signed_zero_inf_nan32, signed_zero_inf_nan64;
    uint8_t maximal_reconvergence;
    uint8_t memory_model_device_scope;
    uint8_t shader_clock_subgroup, shader_clock_device;

    uint8_t fused16, fused32, fused64; /* VULKAN: OpFmaKHR may be used, which unlike Fma guarantees a single rounding (VK_KHR_shader_fma) */

    /* The driver's own operation is proved exact (rounded once, correctly, and denormals are preserved). Where 0, our own instruction
     * sequence is used. */
    uint8_t exact_fma16, exact_fma32, exact_fma64, exact_div32, exact_div64, exact_sqrt32, exact_sqrt64;
    /* f32 subnormals are preserved in comparison, minimum, maximum, widening and inverse roots; addition and multiplication preserve
     * them on every device. Guaranteed by DenormPreserve, or proved for the driver: NVIDIA 580 flushes them in these operations and in
     * Fma (measured on an H200). */
    uint8_t keeps_subnormals32;
    uint8_t sync_form;       /* enum ptx2spv_sync_form */
    uint8_t threads_in_turn; /* WARP_NATIVE on CPUs: between barriers the warps of a block run one after the other, so no warp may wait
                                for another, and every thread must reach every barrier */
    uint8_t exact_zeros;     /* addition and division respect the sign of a constant zero: lavapipe replaces x + 0 by x (also for -0), and
                            treats x / 0 as undefined */
    uint8_t fma32_flushes;   /* exact_fma32 holds except for subnormals, which are flushed to zero as operands and results */
    uint8_t guards_fma32;    /* fma.rn.f32 is the driver's Fma, repeated by our own sequence where subnormals may be involved; if not
                               fma32_flushes, the first Fma is made to flush as well (for tests). Needs float64 */
    uint8_t refined_sqrt32;  /* one fused step turns the driver's InverseSqrt into an exact f32 root; needs exact_fma32 */
    uint8_t llvm_functions;  /* PoCL 6.0: fma, roots and roundings are LLVM's own instructions, imported by name */
    uint8_t refined_roots64; /* f64 roots and inverse roots are computed by fused steps from the driver's InverseSqrt of f32, whose error
                                is at most 2 ulp: faster there than the driver's own, which are used for rare operands only */
    uint8_t unroll_hint;     /* small loops that only compute run faster if LoopControl requests unrolling */
    uint8_t vectors;         /* enum ptx2spv_vectors */
    uint8_t inlines;         /* VULKAN: the driver inlines all functions. Long sequences of ours are then functions that the kernel calls,
                                which takes less memory and time than to repeat them */
    uint8_t vectorizes;      /* OPENCL: the driver makes vectors of neighbouring threads, and loads and stores vectors if it sees that they
                                access adjacent memory */
    uint8_t sampled_images;  /* VULKAN: kernels may read textures through images: see PTX2SPV_IMAGE_DESCRIPTORS */
    uint8_t images_take_any_place; /* coordinates that are not numbers, infinite or huge are as good as any there */
    uint8_t splits_fma32;          /* fma.rn.f32 is a product and a sum, which the driver may contract to one operation, where nothing
                                      depends on the single rounding (exact/residuals.c): for targets without exact_fma32 on which the
                                      exact sequence would take several times as long as anything else */
    uint8_t short_offsets;         /* enum ptx2spv_offsets */
    /* A kernel may ask the device to take f32 subnormals for zeros of the same sign, as operands of arithmetic and as results: .ftz needs no code
     * then (exact/flush_mode.c). VULKAN: the execution mode DenormFlushToZero; OPENCL: the build option -cl-denorms-are-zero, for a kernel whose
     * kernel_info.flushes32 is 1. */
    uint8_t denorm_flush32;
    uint8_t reserved[4]; /* 0: what follows is aligned */
    uint8_t lockstep;    /* the lanes of a warp run in lockstep at all accesses to shared and global memory, not only where the module's
                            .target or volatile accesses require it (see warp_synchronous.c) */
    struct ptx2spv_matrix matrices[PTX2SPV_MATRICES_MAX]; /* for PTX2SPV_WARP_NATIVE and a subgroup_size of 32 */
    struct ptx2spv_window windows[PTX2SPV_WINDOWS_MAX];   /* PTX2SPV_POINTER_WINDOWS: they do not overlap; one of size 0 ends the table */
};

/* Specialization constants that every kernel declares (Vulkan). Blocks are launched one-dimensional. */
enum ptx2spv_spec_constant {
    PTX2SPV_SPEC_BLOCK_THREADS = 0, /* x*y*z: the local size in x */
    PTX2SPV_SPEC_BLOCK_X = 1,
    PTX2SPV_SPEC_BLOCK_Y = 2,
    PTX2SPV_SPEC_BLOCK_Z = 3,
    PTX2SPV_SPEC_SHARED_WORDS = 4, /* 32-bit words of work-group memory, static and dynamic part; 1 if there is none */
    PTX2SPV_SPEC_GRID_OFFSET = 5,  /* bool: ctaid = WorkgroupId + system.ctaid_offset (for grids that are split) */
    PTX2SPV_SPEC_COUNT
};

/* The first bytes of the push constants (Vulkan) or of the argument block (OpenCL). Vulkan: the CUDA parameters follow at
 * PTX2SPV_PARAMS_OFFSET if kernel_info.params_in_buffer is 0; otherwise they are in memory at params_address. */
struct ptx2spv_system_block {
    uint64_t image_address;  /* CUDA address (H) of the module's variables; a kernel may let pointers into them escape */
    uint64_t fault_address;  /* device address of a struct ptx2spv_fault that the host reads */
    uint64_t params_address; /* CUDA address (H) of the parameter block, 16-byte aligned, if params_in_buffer */
    uint32_t nctaid[3];
    uint32_t ctaid_offset[3];
};
#define PTX2SPV_PARAMS_OFFSET 48

/* OpenCL: there are no specialization constants; the argument block contains the properties of the launch instead. Kernel argument 0 is
 * a pointer to global memory with this block, 16-byte aligned, followed at PTX2SPV_OPENCL_PARAMS_OFFSET by the CUDA parameters
 * (kernel_info.params_in_buffer is always 0, params_address unused); it does not change while the kernel runs. Argument 1 exists only if
 * kernel_info.uses_shared: local memory of shared_bytes + exchange_bytes + exchange_thread_bytes * threads of the block, at least 4
 * bytes. Work-groups have the dimensions of the block, or, if kernel_info.linear_block, one dimension of x*y*z work-items; there are as
 * many groups in each dimension as the grid has blocks. ctaid = group id + system.ctaid_offset. Blocks have at most 8192 threads. */
struct ptx2spv_opencl_block {
    struct ptx2spv_system_block system;
    uint32_t ntid[3];
    uint32_t shared_bytes; /* static and dynamic part, a multiple of 4 */
};
#define PTX2SPV_OPENCL_PARAMS_OFFSET 64

/* Written by a kernel that stops with an error; only the first write of `code` takes effect. */
struct ptx2spv_fault {
    uint32_t code; /* enum ptx2spv_fault_code in the low 8 bits, above them those of ptx2spv_kernel_tag of the kernel */
    uint32_t reserved[3];
};
/* What %globaltimer is made of, at PTX2SPV_TIMER_OFFSET after ptx2spv_system_block.fault_address: with `ticks` of the clock that kernels
 * read it is origin_ns + ticks * (whole_ns + fraction / 2^64), modulo 2^64. The host writes it before a kernel with kernel_info.uses_timer
 * runs. With PTX2SPV_WORKAROUND_TRUNCATED_CLOCK the device's clock may lack its upper `lost_bits` bits. `ticks` are then the value with the
 * clock's lower bits that is nearest to `reference`, a recent value that the host keeps up to date while kernels run. */
struct ptx2spv_timer {
    uint64_t origin_ns, whole_ns, fraction, lost_bits;
    uint64_t reference; /* last, so that the host can write the others without it: only this one changes later */
};
#define PTX2SPV_TIMER_OFFSET 16
enum ptx2spv_fault_code {
    PTX2SPV_FAULT_NONE = 0,
    PTX2SPV_FAULT_TRAP = 1,
    PTX2SPV_FAULT_ASSERT = 2,
    PTX2SPV_FAULT_UNSUPPORTED = 3, /* an instruction that the compiler does not support; a warning named it */
    PTX2SPV_FAULT_STACK = 4,       /* a thread's stack has no room for one more call or alloca */
};
#define PTX2SPV_FAULT_CODE_MASK 0xffu
/* A hash of a kernel's name, with the low 8 bits 0. */
uint32_t ptx2spv_kernel_tag(const char *name);

/* The output of device-side printf. A module that calls printf has a variable PTX2SPV_PRINT_VARIABLE of 8 bytes; before any of its
 * kernels runs, the host stores the CUDA address of a ring there (0: printf returns -2). Records follow each other in the words of the
 * ring, modulo their number. The first word of a record that starts at word w (modulo 2^32) has w + 1 in its upper half and the number
 * of words of the record in its lower half; it is written last. It is followed by the text of the format with its terminating 0, in
 * whole words, and, for each conversion, by a word with the bits of the argument, or for %s by its text in whole words; a `*` takes a
 * word, too. New records overwrite the oldest.
 * An assertion that failed writes a record, too. Its number of words (the first word and struct ptx2spv_assertion) has the bit
 * PTX2SPV_PRINT_ASSERTION set. */
#define PTX2SPV_PRINT_VARIABLE "__cuttle_print"
#define PTX2SPV_PRINT_ASSERTION 0x80000000u
struct ptx2spv_assertion {
    uint64_t message, file, function; /* CUDA addresses of texts, usually in the module's variables */
    uint64_t line;
    struct {
        uint32_t x;
        uint16_t y, z;
    } block, thread;
};
struct ptx2spv_print_ring {
    uint64_t words; /* CUDA address of mask + 1 64-bit words, initially zero */
    uint32_t mask;  /* a power of two minus one */
    uint32_t head;  /* the word at which the next record begins; kernels increment it */
};

/* The heap of device-side malloc and free. A module that uses it has a variable PTX2SPV_HEAP_VARIABLE of 8 bytes; before any of its
 * kernels runs, the host stores the CUDA address of a struct ptx2spv_heap there (0: malloc returns NULL). */
#define PTX2SPV_HEAP_VARIABLE "__cuttle_heap"
#define PTX2SPV_HEAP_HEADER_BYTES 2048
struct ptx2spv_heap {
    uint64_t heap;  /* CUDA address, 16-byte aligned, of PTX2SPV_HEAP_HEADER_BYTES of zeros, followed by the units */
    uint64_t units; /* number of units of 16 bytes; below 2^32 */
};

/* Texture and surface objects. A module that accesses them has a variable PTX2SPV_TEXTURES_VARIABLE of 8 bytes; before any of its kernels
 * runs, the host stores the CUDA address of a directory there: PTX2SPV_TEXTURE_CHUNKS CUDA addresses of chunks (0: there is none), each with
 * PTX2SPV_TEXTURE_CHUNK_RECORDS records. The lower half of a handle is the number of its record plus 1, the upper half the generation, which
 * is never 0 and which the record repeats while the object exists. Fetches by other handles return zeros, and stores by them have no effect. */
#define PTX2SPV_TEXTURES_VARIABLE "__cuttle_textures"
#define PTX2SPV_TEXTURE_CHUNKS 4096
#define PTX2SPV_TEXTURE_CHUNK_RECORDS 256
#define PTX2SPV_TEXTURE_LEVELS 17
enum ptx2spv_texel { /* the type of a channel */
                     PTX2SPV_TEXEL_U8,
                     PTX2SPV_TEXEL_U16,
                     PTX2SPV_TEXEL_U32,
                     PTX2SPV_TEXEL_S8,
                     PTX2SPV_TEXEL_S16,
                     PTX2SPV_TEXEL_S32,
                     PTX2SPV_TEXEL_F16,
                     PTX2SPV_TEXEL_F32,
                     PTX2SPV_TEXEL_U10, /* three channels of 10 bits, and the highest 2 bits, of which the fourth channel consists */
};
enum ptx2spv_texture_address { /* the values of CUaddress_mode */
                               PTX2SPV_TEXTURE_WRAP,
                               PTX2SPV_TEXTURE_CLAMP,
                               PTX2SPV_TEXTURE_MIRROR,
                               PTX2SPV_TEXTURE_BORDER,
};
enum ptx2spv_texture_flag {
    PTX2SPV_TEXTURE_NORMALIZED_COORDINATES = 1, /* coordinates from 0 to 1 span the texture */
    PTX2SPV_TEXTURE_NORMALIZED_VALUES = 2,      /* integers of 8 and 16 bits are read as floats in [0, 1] or [-1, 1] */
    PTX2SPV_TEXTURE_SRGB = 4,                   /* the first three channels of 8-bit integers are sRGB, converted to linear floats */
    PTX2SPV_TEXTURE_LINEAR = 8,                 /* linear filtering within a level */
    PTX2SPV_TEXTURE_LINEAR_LEVELS = 16,         /* linear filtering between levels */
    PTX2SPV_TEXTURE_SEAMLESS = 32,              /* filtering crosses the edges of a cube's faces */
    PTX2SPV_TEXTURE_CUBE = 64,                  /* the slices are faces of cubes, six each */
    PTX2SPV_TEXTURE_LAYERED = 128,              /* the depth of a level is the number of layers, or six times that of cubes */
    PTX2SPV_TEXTURE_REFERENCE = 256,            /* the object of a .texref or .surfref */
    PTX2SPV_TEXTURE_SURFACE = 512,
};
struct ptx2spv_texture_level {
    uint64_t texels;                 /* CUDA address */
    uint64_t row_bytes, slice_bytes; /* distances of rows, and of slices: layers, faces, or planes of a volume */
    uint32_t width, height, depth;   /* at least 1 */
    uint32_t reserved;
};
struct ptx2spv_texture {                 /* a record, of 1 KiB; what is read together is in pieces of 16 bytes that are loaded at once */
    uint32_t generation;                 /* 0: the object does not exist */
    uint32_t row_bytes, height, depth;   /* of surfaces: of the texels of a row; of the level */
    uint64_t texels;                     /* of surfaces: CUDA address */
    uint32_t row_distance, slice_rows;   /* of surfaces: of rows that follow one another; between slices */
    uint64_t linear_texels;              /* of linear memory whose channels are words: the CUDA address again, */
    uint32_t linear_width, linear_bytes; /* the number of texels, and the size of one; 0: other textures */
    uint32_t texel;                      /* enum ptx2spv_texel */
    uint32_t channels, texel_bytes;      /* 1, 2 or 4; of all channels */
    uint32_t flags;                      /* a set of enum ptx2spv_texture_flag */
    uint32_t border[4];                  /* the bits of the colour as kernels read it: floats, or integers of 32 bits */
    uint32_t address[3];                 /* enum ptx2spv_texture_address, for x, y and z */
    uint32_t n_levels;                   /* at least 1 */
    float level_bias, min_level, max_level;
    uint32_t dimensions; /* of a level: 1, 2 or 3 */
    uint32_t max_anisotropy;
    uint32_t base_level, base_weight; /* the level of fetches without one, and the weight of the next level in units of 1/256 */
    uint32_t reserved;
    struct ptx2spv_texture_level levels[PTX2SPV_TEXTURE_LEVELS];
    uint32_t padding[54];
};

/* Behind the addresses of a directory: for each descriptor of an image the reciprocals of the extents of its first level, x, y, z and 0, as floats. A
 * device takes longer to tell the extents. */
#define PTX2SPV_IMAGE_SCALES_OFFSET ((uint64_t)PTX2SPV_TEXTURE_CHUNKS * 8)
#define PTX2SPV_IMAGE_SCALE_BYTES 16
/* Behind these: the linear value of each 8-bit sRGB value, as floats. */
#define PTX2SPV_SRGB_OFFSET (PTX2SPV_IMAGE_SCALES_OFFSET + (uint64_t)PTX2SPV_IMAGE_DESCRIPTORS * PTX2SPV_IMAGE_SCALE_BYTES)
#define PTX2SPV_SRGB_VALUES 256

/* If the target has sampled_images an object may also be an image, and its handle says so. Kernels whose kernel_info.uses_images is 1 have
 * descriptor set 0, with one binding for each enum ptx2spv_image_shape: an array of PTX2SPV_IMAGE_DESCRIPTORS combined images and samplers of that
 * shape, all of them valid, whose channels are floats, or integers without or with a sign. The record of the object, which other instructions
 * use, is the same as without an image; the generation has these bits, the lowest of which are a number like any generation. */
#define PTX2SPV_IMAGE_DESCRIPTORS 4096
enum ptx2spv_image_shape {
    PTX2SPV_IMAGE_PLANE,  /* also a line, which is the only row */
    PTX2SPV_IMAGE_LAYERS, /* planes, lines, or the faces of cubes */
    PTX2SPV_IMAGE_VOLUME,
    PTX2SPV_IMAGE_SHAPES
};
/* The geometry of the instructions that read an image. */
enum ptx2spv_image_geometry {
    PTX2SPV_IMAGE_1D,
    PTX2SPV_IMAGE_2D,
    PTX2SPV_IMAGE_3D,
    PTX2SPV_IMAGE_A1D,
    PTX2SPV_IMAGE_A2D,
    PTX2SPV_IMAGE_CUBE,
    PTX2SPV_IMAGE_ACUBE,
};
enum ptx2spv_image_channels { PTX2SPV_IMAGE_FLOAT, PTX2SPV_IMAGE_UNSIGNED, PTX2SPV_IMAGE_SIGNED };
/* How the operands of an instruction become those of the device. The samplers of planes know whether coordinates are in texels, those of layers
 * and volumes take normalized ones only. */
enum ptx2spv_image_use {
    PTX2SPV_IMAGE_ONE_LEVEL,
    PTX2SPV_IMAGE_POINT_LEVELS,  /* several, of which the nearest one is read */
    PTX2SPV_IMAGE_LINEAR_LEVELS, /* several, which are filtered */
    PTX2SPV_IMAGE_POINT_TEXELS,  /* layers and volumes of one level: coordinates in texels, no filter */
    PTX2SPV_IMAGE_LINEAR_TEXELS, /* the same, filtered */
};
enum ptx2spv_image_generation {
    PTX2SPV_IMAGE_NUMBERS = 1 << 10,     /* below: the number */
    PTX2SPV_IMAGE_USE_SHIFT = 10,        /* enum ptx2spv_image_use, of 3 bits */
    PTX2SPV_IMAGE_GEOMETRY_SHIFT = 13,   /* enum ptx2spv_image_geometry, of 3 bits */
    PTX2SPV_IMAGE_DESCRIPTOR_SHIFT = 16, /* the number of its descriptor, of 12 bits */
    PTX2SPV_IMAGE_NARROW_SHIFT = 28,     /* 1: places outside of [-16, 16] are the same as those at its ends */
    PTX2SPV_IMAGE_CHANNELS_SHIFT = 29,   /* enum ptx2spv_image_channels, of 2 bits */
    PTX2SPV_IMAGE_SHIFT = 31,            /* 1: it is an image */
};

/* What a CUtensorMap contains, for the instructions cp.async.bulk.tensor and cp.reduce.async.bulk.tensor. Dimensions that the tensor lacks
 * have one coordinate. */
enum ptx2spv_tensor_type { /* as in CUtensorMapDataType */
                           PTX2SPV_TENSOR_U8,
                           PTX2SPV_TENSOR_U16,
                           PTX2SPV_TENSOR_U32,
                           PTX2SPV_TENSOR_S32,
                           PTX2SPV_TENSOR_U64,
                           PTX2SPV_TENSOR_S64,
                           PTX2SPV_TENSOR_F16,
                           PTX2SPV_TENSOR_F32,
                           PTX2SPV_TENSOR_F64,
                           PTX2SPV_TENSOR_BF16,
                           PTX2SPV_TENSOR_F32_FTZ, /* subnormals become zeros when they are loaded */
                           PTX2SPV_TENSOR_TF32,
                           PTX2SPV_TENSOR_TF32_FTZ,
};
enum ptx2spv_tensor_operation { /* of functions that write a tensor */
                                PTX2SPV_TENSOR_STORE,
                                PTX2SPV_TENSOR_ADD,
                                PTX2SPV_TENSOR_MIN,
                                PTX2SPV_TENSOR_MAX,
                                PTX2SPV_TENSOR_INC,
                                PTX2SPV_TENSOR_DEC,
                                PTX2SPV_TENSOR_AND,
                                PTX2SPV_TENSOR_OR,
                                PTX2SPV_TENSOR_XOR,
};
#define PTX2SPV_TENSOR_MARK 0x746e7343u
enum ptx2spv_tensor_swizzle {                                     /* what changes in an address in shared memory */
                              PTX2SPV_TENSOR_SWIZZLE_BITS = 0x70, /* bits 4 to 6 as far as they are set, by the bits n places above */
                              PTX2SPV_TENSOR_SWIZZLE_SHIFT = 8,   /* n is in the bits from this one on */
                              PTX2SPV_TENSOR_SWIZZLE_FLIP = 0x80, /* where bit 7 is set, the halves of 16 bytes change places */
};
enum ptx2spv_tensor_flags {
    PTX2SPV_TENSOR_FILLS_NAN = 1, /* elements outside of the tensor are NaN, not 0 */
    /* The tensor consists of slices of 16 or 32 bytes. Instructions give coordinates W (in slices), H, D, C (in slices) and N, where H and D may
     * be missing. Here C comes first and W second; a row of a box is one slice, and box[0] has its elements. */
    PTX2SPV_TENSOR_INTERLEAVED = 2,
};
struct ptx2spv_tensor_map {
    uint64_t address;       /* CUDA address of the element at coordinates 0 */
    uint64_t strides[4];    /* distances in bytes of coordinates 1 to 4 */
    uint32_t last[5];       /* the greatest coordinates */
    int32_t box[7];         /* tiles: the size of the box. im2col: the channels, the lower corner (3), the upper corner (3) */
    uint32_t pixels;        /* im2col: the pixels of a column; 0 for tiles */
    uint32_t steps;         /* 4 bits for each dimension: every how manieth coordinate is accessed */
    uint32_t rank;          /* 1 to 5 */
    uint32_t type;          /* enum ptx2spv_tensor_type */
    uint32_t element_bytes; /* 1, 2, 4 or 8 */
    uint32_t swizzle;       /* enum ptx2spv_tensor_swizzle */
    uint32_t flags;         /* enum ptx2spv_tensor_flags */
    uint32_t mark;          /* PTX2SPV_TENSOR_MARK */
    uint64_t slice_stride;  /* interleaved: the distance in bytes of slices with successive coordinates of C */
};

/* A kernel compiled with options.cooperative has an additional parameter at kernel_info.grid_param_offset: the CUDA address of this
 * struct. If kernel_info.grid_thread_words is not 0, its blocks may end before they are complete, to wait for others: the kernel must
 * then be dispatched again, with everything else unchanged, until no block waits. The state of a block has PTX2SPV_GRID_HEADER_BYTES,
 * all of its work-group memory (the size in PTX2SPV_SPEC_SHARED_WORDS or ptx2spv_opencl_block.shared_bytes, exchange_bytes, and
 * exchange_thread_bytes * threads), and 4 * grid_thread_words for each thread. */
#define PTX2SPV_GRID_HEADER_BYTES 4
struct ptx2spv_grid {
    uint32_t barriers[4]; /* used by cooperative_groups, initially zero: %envreg1 and %envreg2 have their address */
    uint64_t states;      /* CUDA address, 8-byte aligned, of the states of the blocks; their initial contents do not matter */
    uint64_t stride;      /* distance in bytes from one state to the next, a multiple of 8 */
    uint32_t phase;       /* 0 in the first dispatch, nonzero in later ones */
    uint32_t waiting;     /* number of blocks that wait: the host sets it to 0 before each dispatch, kernels count */
    /* for kernels compiled with options.clusters: */
    uint32_t cluster[3]; /* dimensions of a cluster in blocks, which divide those of the grid */
    uint32_t reserved;
    /* CUDA address of a 64-bit word for each cluster, at first PTX2SPV_CLUSTER_BARRIER of its number of threads. */
    uint64_t cluster_barriers;
};
/* An mbarrier (build_mbarrier.c) for which n threads are pending, in this phase and the next. */
#define PTX2SPV_CLUSTER_BARRIER(n) ((uint64_t)(n) << 20 | (uint64_t)(n))
/* A shared::cluster address: the offset in the shared memory of a block, and, from this bit on, the block's rank in its cluster plus 1, or 0
 * for the block that accesses it. */
#define PTX2SPV_CLUSTER_RANK_SHIFT 24

/* What a kernel compiled with options.probe_matrices finds out. Its only parameter is the CUDA address of this struct, and its block has 32 threads.
 * Of each matrix of the target and each use of it, it stores the number of components if that is 0 in the target; otherwise it loads the two
 * matrices in `inputs`, whose rows follow each other without gaps, and each lane stores its components of both, packed in words. */
#define PTX2SPV_MATRIX_BYTES 4096 /* the largest matrix */
#define PTX2SPV_MATRIX_WORDS 32   /* the most that a lane holds */
struct ptx2spv_matrix_probe {
    struct {
        uint8_t inputs[2][PTX2SPV_MATRIX_BYTES];
        uint32_t words[2][PTX2SPV_MATRIX_WORDS][32]; /* by lane */
        uint32_t components[4];                      /* one number */
    } uses[PTX2SPV_MATRICES_MAX][PTX2SPV_MATRIX_USES];
};

/* A kernel with kernel_info.shared_in_memory has this struct as an additional parameter at kernel_info.slots_param_offset, and no work-group
 * memory. Block number b of the grid (x fastest) has its shared memory and its exchange area in slot b & mask; the host lets only blocks run
 * at the same time that have different slots. The initial contents of a slot do not matter.
 * In kernels that are compiled for clusters (options.clusters) blocks are numbered by cluster, and within a cluster by rank; such launches
 * have at least as many slots as blocks. */
struct ptx2spv_slots {
    uint64_t address;      /* CUDA address, a multiple of PTX2SPV_SLOT_ALIGN */
    uint32_t mask;         /* the number of slots, a power of two, minus one */
    uint32_t stride_bytes; /* from one slot to the next: a multiple of PTX2SPV_SLOT_ALIGN */
};
#define PTX2SPV_SLOT_ALIGN 256

/* A kernel compiled with options.check examines each access of the program before it makes it. It has an additional parameter of 64 bits at
 * kernel_info.check_param_offset, unless that is 0: the CUDA address of this struct, which the host fills before the launch and which does
 * not change while the kernel runs. An access that is not allowed is left out (loads give 0) and counted in a site: kernel_info.check_sites
 * of them are in memory that the host reads, initially zero. The accesses of system functions are not examined. */
struct ptx2spv_check {
    uint64_t written[4]; /* all ones: the shadow of memory that counts as written */
    uint64_t scratch[4]; /* written by kernels, and never read */
    uint64_t sites;      /* CUDA address of the kernel's sites, struct ptx2spv_check_site */
    uint64_t ranges;     /* CUDA address of the ranges that kernels may access, in ascending order; the first one has start and bytes 0 */
    uint32_t n_ranges;   /* with that first one */
    uint32_t launch;     /* what reports of this launch contain */
    uint64_t variables;  /* struct ptx2spv_check_range.accesses of the module's variables that are not constant */
    /* Here follows a struct ptx2spv_check_range for each whole 8 bytes of the declared parameters: the range that may be written which contains
     * this value as an address, or bytes 0. */
};
#define PTX2SPV_CHECK_READ_ONLY (UINT64_C(1) << 63) /* in ptx2spv_check_range.bytes: kernels may not write */
struct ptx2spv_check_range {
    uint64_t start, bytes; /* CUDA address */
    /* Unless 0: each byte has another one, so many bytes further on, which is 0 until something is written there. With check_written */
    uint64_t written;
    /* Unless 0: each aligned word of 4 bytes has 32 bytes, at eight times its address plus this: the marks of the blocks and threads that wrote there and read
     * it last (blocks.c). With check_blocks */
    uint64_t accesses;
    /* Unless 0: each aligned word of 4 bytes has 8 bytes, at twice its address plus this: the number (struct ptx2spv_check.launch) of the last launch that read
     * it, and that of the last one that wrote there (launches.c). With check_launches */
    uint64_t launches;
};
/* What the weak stores of a kernel lead to. Other memory needs no marks of accesses. */
#define PTX2SPV_STORED_PARAMS 8
struct ptx2spv_stored {
    uint32_t to_variables;                  /* variables of the module */
    uint32_t n_params;                      /* more than PTX2SPV_STORED_PARAMS: it is not known what they lead to */
    uint32_t params[PTX2SPV_STORED_PARAMS]; /* offsets of parameters of 8 bytes, from which addresses are computed */
};
enum ptx2spv_check_fault {
    PTX2SPV_CHECK_NONE,
    PTX2SPV_CHECK_OUTSIDE,    /* not within one range; in shared memory and local memory, not within that of the block or thread */
    PTX2SPV_CHECK_MISALIGNED, /* not at a multiple of its size */
    PTX2SPV_CHECK_WRITE,      /* a write to a range that is read-only */
    PTX2SPV_CHECK_MASK,       /* the member mask of a warp instruction lacks the thread; `address` is the mask */
    PTX2SPV_CHECK_RACE, /* in shared memory, with the thread whose number in the block, plus 1, is `other` (or PTX2SPV_CHECK_SEVERAL); in other memory,
                         with the block whose number in the grid, plus 1, is `other` (or PTX2SPV_CHECK_SEVERAL_BLOCKS), or with PTX2SPV_CHECK_OF_BLOCK and
                         the number of a thread of the block (or PTX2SPV_CHECK_SEVERAL); PTX2SPV_CHECK_AFTER_READ: those have read, else written */
    PTX2SPV_CHECK_UNWRITTEN, /* a read of bytes that nothing has written */
    PTX2SPV_CHECK_BARRIER, /* the thread of its warp with number `address` in the block waits at another barrier, in line `other`; 0: unknown */
};
#define PTX2SPV_CHECK_FAULTS 7
enum ptx2spv_check_operation { PTX2SPV_CHECK_LOAD, PTX2SPV_CHECK_STORE, PTX2SPV_CHECK_ATOMIC, PTX2SPV_CHECK_WARP };
enum ptx2spv_check_space { PTX2SPV_CHECK_GLOBAL, PTX2SPV_CHECK_SHARED, PTX2SPV_CHECK_LOCAL, PTX2SPV_CHECK_GENERIC };
/* The faults of one kind at one access. `count` counts them all; the other members describe the first. The kernel writes `fault` last; the host reads the
 * site once `fault` is set, and then sets `fault` and `count` to 0.
 * Two words are stored as one: drivers for CPUs compile each store to a loop over the lanes, and reports are most of the code of a checked kernel. */
struct ptx2spv_check_site {
    uint32_t count; /* how often */
    uint32_t reserved;
    uint64_t address;           /* CUDA address, generic address, or offset in shared or local memory */
    uint32_t line;              /* in the PTX text */
    uint32_t access;            /* PTX2SPV_CHECK_ACCESS */
    uint32_t block_x, block_yz; /* %ctaid: x; y, and z << 16 */
    uint32_t launch;            /* of struct ptx2spv_check */
    uint32_t thread;            /* %tid: x, y << 10, and z << 20 */
    uint32_t other;             /* see PTX2SPV_CHECK_RACE */
    uint32_t fault;             /* enum ptx2spv_check_fault */
    uint32_t unused[4];
};
/* In `other`. */
#define PTX2SPV_CHECK_SEVERAL 2047
#define PTX2SPV_CHECK_SEVERAL_BLOCKS 0x3fffffffu
#define PTX2SPV_CHECK_AFTER_READ 0x40000000u
#define PTX2SPV_CHECK_OF_BLOCK 0x80000000u
/* The number of the PTX text (the input of the linker), the bytes of the access, and enumerators of the operation and the space. */
#define PTX2SPV_CHECK_ACCESS(source, bytes, operation, space)                                                                              \
    ((uint32_t)(source) << 16 | (uint32_t)(bytes) << 4 | (uint32_t)(operation) << 2 | (uint32_t)(space))
#define PTX2SPV_CHECK_SOURCE(access) ((access) >> 16)
#define PTX2SPV_CHECK_BYTES(access) ((access) >> 4 & 0xfffu)
#define PTX2SPV_CHECK_OPERATION(access) ((access) >> 2 & 3u)
#define PTX2SPV_CHECK_SPACE(access) ((access) & 3u)

struct ptx2spv_param {
    uint32_t offset, size, align; /* in bytes; offset in the parameter block */
};

/* The properties of a kernel that its declaration determines. */
struct ptx2spv_kernel_decl {
    const char *name;
    const struct ptx2spv_param *params;
    uint32_t n_params;
    uint32_t param_bytes; /* size of the parameter block */
    uint32_t max_ntid[3]; /* .maxntid; 0 = not stated */
    uint32_t req_ntid[3]; /* .reqntid; 0 = not stated */
    uint32_t min_nctapersm, max_nreg;
    uint32_t cluster[3];         /* .reqnctapercluster; 0 = not stated */
    uint32_t max_cluster;        /* .maxclusterrank; 0 = not stated */
    uint8_t explicit_cluster;    /* .explicitcluster */
    uint8_t blocks_are_clusters; /* .blocksareclusters: the dimensions of a launch are those of the grid of clusters */
};

enum ptx2spv_variable_space { PTX2SPV_VAR_GLOBAL, PTX2SPV_VAR_CONST };
/* Texture, surface and sampler references are variables of 8 bytes, in which the host stores the handle of an object (0: none) before a kernel of the
 * module runs. */
enum ptx2spv_reference { PTX2SPV_NO_REFERENCE, PTX2SPV_TEXREF, PTX2SPV_SURFREF, PTX2SPV_SAMPLERREF };

struct ptx2spv_variable {
    const char *name;
    uint64_t offset, size; /* in bytes; offset in its image */
    uint32_t align;
    uint8_t space;     /* enum ptx2spv_variable_space */
    uint8_t managed;   /* .attribute(.managed): it is in the managed image */
    uint8_t external;  /* .extern without a definition: the size may be 0, and it is in no image */
    uint8_t visible;   /* .visible, .weak or .common: may be looked up by name */
    uint8_t reference; /* enum ptx2spv_reference */
};

static inline bool ptx2spv_variable_is_in_image(const struct ptx2spv_variable *variable)
{
    return !variable->external && !variable->managed && variable->size;
}

/* The `width` bytes (4 or 8) at `offset` of an image must be set to the address of variable `variable` plus `addend`. */
struct ptx2spv_relocation {
    uint64_t offset;
    int64_t addend;
    uint32_t variable;
    uint16_t width;
    uint16_t in_managed; /* whether it applies to the managed image */
};

struct ptx2spv_module;

/* Parses `length` bytes of PTX text (a NUL ends it earlier). *out is unchanged on failure. UNDEFINED: the text uses an extern function
 * or variable that it does not define. */
enum ptx2spv_status ptx2spv_module_create(const char *text, size_t length, const struct ptx2spv_options *options,
                                          struct ptx2spv_module **out);
void ptx2spv_module_destroy(struct ptx2spv_module *module);

/* A linker creates one module from several texts. Names that are .visible, .weak, .common or .extern are global, all others are local to
 * their text. */
struct ptx2spv_linker;
struct ptx2spv_input {
    const char *text;
    size_t length;    /* in bytes; a NUL ends the text earlier */
    const char *name; /* for messages; may be NULL */
    bool on_demand;   /* included only if it defines names that are otherwise undefined: a member of a library */
};
#define PTX2SPV_INPUTS_MAX 65535

/* OUT_OF_MEMORY. */
enum ptx2spv_status ptx2spv_linker_create(struct ptx2spv_linker **out);
/* Parses a text; the linker keeps a copy of it. MULTIPLY_DEFINED: a name conflicts with an earlier text. After a failure, all further
 * calls return the same status. */
enum ptx2spv_status ptx2spv_linker_add(struct ptx2spv_linker *linker, const struct ptx2spv_input *input,
                                       const struct ptx2spv_options *options);
/* Creates the module; the linker can only be destroyed afterwards. *out is unchanged on failure. UNDEFINED: a name is used and not
 * defined; NOT_FOUND: there is no text. */
enum ptx2spv_status ptx2spv_linker_finish(struct ptx2spv_linker *linker, const struct ptx2spv_options *options,
                                          struct ptx2spv_module **out);
void ptx2spv_linker_destroy(struct ptx2spv_linker *linker);
/* Whether input `index` is part of the module; on_demand inputs may not be. */
bool ptx2spv_module_uses_input(const struct ptx2spv_module *module, unsigned index);

/* The results are valid as long as the module exists. An index out of range gives NULL. */
unsigned ptx2spv_module_kernel_count(const struct ptx2spv_module *module);
const struct ptx2spv_kernel_decl *ptx2spv_module_kernel(const struct ptx2spv_module *module, unsigned index);
unsigned ptx2spv_module_variable_count(const struct ptx2spv_module *module);
const struct ptx2spv_variable *ptx2spv_module_variable(const struct ptx2spv_module *module, unsigned index);
/* The initial bytes of variables: those of the pieces; all others are zero. Pieces are in ascending order, and their bytes follow each
 * other in memory. They contain everything that relocations and the host write: relocated addresses, the address of the managed image,
 * PTX2SPV_PRINT_VARIABLE and PTX2SPV_HEAP_VARIABLE. */
struct ptx2spv_piece {
    uint64_t offset, size_bytes;
    const void *bytes;
};
struct ptx2spv_image {
    uint64_t size_bytes; /* may be 0 */
    uint32_t align;
    unsigned n_pieces; /* may be 0 */
    const struct ptx2spv_piece *pieces;
};
/* The piece that contains the byte at an offset; NULL: that byte is in no piece, and so it is zero. */
const struct ptx2spv_piece *ptx2spv_image_piece(const struct ptx2spv_image *image, uint64_t offset);
/* The image of all variables except the managed ones. Never NULL. */
const struct ptx2spv_image *ptx2spv_module_image(const struct ptx2spv_module *module);
/* The same for managed variables, which have an image of their own since host and device share them. If there are any, kernels read its
 * address from the first 8 bytes of the module's image: the host must write it there when it has placed the two images. */
const struct ptx2spv_image *ptx2spv_module_managed_image(const struct ptx2spv_module *module);
const struct ptx2spv_relocation *ptx2spv_module_relocations(const struct ptx2spv_module *module, unsigned *count);
/* .version as major*10+minor, .target as its number (sm_75: 75), .address_size in bits. */
void ptx2spv_module_versions(const struct ptx2spv_module *module, unsigned *isa, unsigned *sm, unsigned *address_bits);

/* A place in the source of a kernel, according to .loc and .file in its PTX. */
struct ptx2spv_place {
    char file[256];     /* the end of its path, if that is longer; "": unknown */
    char function[256]; /* the inlined function that contains it, mangled; "": it is not inlined, or unknown */
    unsigned line, column;
};
#define PTX2SPV_PLACES_MAX 8
/* Where the code at a line of a PTX text comes from (the input of the linker with that number): the place itself, and the places of the calls by
 * which it was inlined, outwards. Returns how many places were stored: 0: unknown. */
unsigned ptx2spv_module_places(const struct ptx2spv_module *module, unsigned input, unsigned line,
                               struct ptx2spv_place out[PTX2SPV_PLACES_MAX]);

#define PTX2SPV_GRID_LIMIT (UINT64_C(1) << 31)
/* An allocation that a parameter points into, and every other range of addresses that a kernel may take for one object. It is 1 MiB less
 * than 2^31, so that a parameter may also point a little in front of its object, as programs do that count from 1. */
#define PTX2SPV_OBJECT_LIMIT ((UINT64_C(1) << 31) - (UINT64_C(1) << 20))

/* The properties of a compiled kernel. */
struct ptx2spv_kernel_info {
    uint32_t param_bytes;
    uint8_t params_in_buffer;    /* see struct ptx2spv_system_block */
    uint8_t uses_shared;         /* it has work-group memory: .shared variables or an exchange area */
    uint8_t uses_dynamic_shared; /* it refers to an .extern .shared array */
    uint8_t reads_shared_size;   /* it reads %dynamic_smem_size or the like: the host must not round the size up */
    uint8_t linear_block;        /* it must be launched one-dimensional, so that lanes match CUDA's lanes (Vulkan: always) */
    uint8_t uses_barrier;
    uint8_t uses_fault;
    uint8_t uses_timer;       /* reads struct ptx2spv_timer */
    uint8_t uses_images;      /* has the descriptors of textures */
    uint8_t shared_in_memory; /* see struct ptx2spv_slots; uses_shared is then 0 */
    uint8_t limits_grid;      /* a launch may have at most PTX2SPV_GRID_LIMIT threads in x, gridDim.x * blockDim.x */
    uint8_t checks_races;     /* options.check_races was possible for its shared memory */
    uint8_t checks_written;   /* likewise options.check_written */
    uint8_t checks_barriers;  /* likewise options.check, where barriers may diverge */
    uint8_t checks_launches;  /* likewise options.check_launches */
    /* With any of these: it has this many times as much shared memory as it would have without, whose size is rounded up to a multiple of 16 bytes if
     * that is more than once, and then check_thread_bytes for each thread of the block. Else 0. */
    uint8_t shared_copies, check_thread_bytes;
    uint8_t writes_unseen;  /* it may write to global memory without marking that as written (struct ptx2spv_check_range) */
    uint8_t uses_subgroups; /* its code depends on the size of subgroups, which must be the target's */
    uint8_t whole_warps;    /* a block of a launch must have a multiple of 32 threads */
    uint8_t limits_objects; /* objects to which parameters point may have at most PTX2SPV_OBJECT_LIMIT bytes */
    uint8_t flushes32;      /* ptx2spv_target.denorm_flush32 is relied on */
    uint32_t static_shared_bytes;
    uint32_t dynamic_shared_offset; /* offset of the dynamic part: the static size rounded up to its alignment */
    uint32_t local_bytes;           /* .local memory of a thread */
    uint32_t stack_bytes;           /* options.stack_bytes if it calls recursive functions; 0: it does not */
    uint32_t registers;             /* maximum number of 32-bit words that are live at once in a thread: an estimate of its registers */
    /* Additional work-group memory for exchanges between the threads of a block: a fixed part, and a part for each thread. It counts
     * towards the device's limit; PTX2SPV_SPEC_SHARED_WORDS does not include it. */
    uint32_t exchange_bytes, exchange_thread_bytes;
    uint32_t grid_param_offset, grid_thread_words; /* cooperative kernels: see struct ptx2spv_grid */
    uint32_t slots_param_offset;                   /* if shared_in_memory */
    uint32_t number_param_offset;             /* unless 0: an additional parameter of 64 bits, the number of the launch, which is %gridid */
    uint32_t check_param_offset, check_sites; /* see struct ptx2spv_check */
    struct ptx2spv_stored check_stored;       /* with check_blocks */
};

/* A SPIR-V module with one entry point, "main". The words are from malloc. */
struct ptx2spv_kernel {
    uint32_t *words;
    size_t n_words;
    struct ptx2spv_kernel_info info;
};

/* Compiles kernel `index` for a target. *out is unchanged on failure; free it with ptx2spv_kernel_finish. */
enum ptx2spv_status ptx2spv_kernel_compile(const struct ptx2spv_module *module, unsigned index, const struct ptx2spv_target *target,
                                           const struct ptx2spv_options *options, struct ptx2spv_kernel *out);
void ptx2spv_kernel_finish(struct ptx2spv_kernel *kernel);

/* A one-line English description of a status; never NULL. */
const char *ptx2spv_status_string(enum ptx2spv_status status);

#ifdef __cplusplus
}
#endif
#endif
