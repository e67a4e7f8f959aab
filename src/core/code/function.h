/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: the kernels of a module. Each is compiled at its first launch or query, by whichever thread is first. */
#ifndef CT_CORE_FUNCTION_H
#define CT_CORE_FUNCTION_H
/* Parts: function_attributes.c, function_limits.c. */

#include "module.h"

/* Blocks of a cluster: the most that every device with clusters has, and the most that one of ours has. */
enum { CT_CLUSTER_PORTABLE = 8, CT_CLUSTER_MOST = 16 };

/*   NONE ──first need──> RUNNING ──> DONE
 *    ^──out of memory,─────┘  └────> FAILED: returns the same error from then on
 *       or compiled ahead */
enum ct_compile_state { CT_COMPILE_NONE, CT_COMPILE_RUNNING, CT_COMPILE_DONE, CT_COMPILE_FAILED };

struct ct_function {
    struct ct_object object;
    struct ct_module *module;               /* a reference */
    unsigned index;                         /* in the compiler's module */
    const struct ptx2spv_kernel_decl *decl; /* borrowed from it */

    atomic_int state; /* enum ct_compile_state; written under module->lock. The release store of DONE publishes the two members below */
    CUresult compile_error;
    struct ptx2spv_kernel_info info;
    struct ct_kernel_image *image;

    atomic_int max_dynamic_shared; /* bytes that a launch may request; -1: the default limit of the device */
    atomic_int carveout;           /* percent, a hint; -1: none */

    atomic_int required_cluster[3]; /* CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH ..: 0 none */
    atomic_int larger_clusters;     /* CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED */
    atomic_int cluster_policy;      /* a hint */

    bool is_cooperative;             /* compiled for cooperative launches: it is another function's `cooperative` */
    bool is_in_memory;               /* its shared memory is in device memory: it is another function's `in_memory` */
    bool is_any_grid;                /* compiled for grids, blocks and objects of any size: it is another function's `any_grid` */
    bool is_clustered;               /* compiled for clusters of several blocks: it is another function's `clustered` */
    uint32_t stack_bytes;            /* options.stack_bytes; 0: not compiled yet */
    struct ct_function *cooperative; /* the same kernel for those; without a handle; NULL until needed; guarded by module->lock */
    struct ct_function *in_memory;   /* likewise, with its shared memory in device memory; a cooperative function may have one, too */
    struct ct_function *clustered;   /* likewise, for launches with clusters of several blocks */
    struct ct_function *any_grid;    /* likewise, for launches that info.limits_grid, limits_objects or whole_warps excludes */
    struct ct_function *deeper;      /* likewise, with a larger stack; it may have a deeper one in turn */
    struct ct_check_sites *_Atomic check_sites; /* core/check/sites.c, which owns them; NULL until a launch that is checked */
    struct ct_launch_setup *setup; /* of the launch functions of CUDA 2 (launch_setup.c); NULL until used; guarded by module->lock */
};

/* Creates and publishes the function of kernel `index`; the caller receives a reference. */
CUresult ct_function_create(struct ct_module *module, unsigned index, struct ct_function **out);
/* Invalidates its handle and releases the caller's reference. */
void ct_function_retire(struct ct_function *function);

void ct_function_release(struct ct_function *function); /* releases the result of ct_function_lookup; NULL is a no-op */

/* Whether its accesses to memory are examined. */
bool ct_function_is_checked(const struct ct_function *function);
/* Compiles the function unless it has been compiled. The caller holds no lock. NOT_SUPPORTED, INVALID_PTX, OUT_OF_MEMORY and errors of
 * the backend. In a thread that compiles ahead (ct_thread_compiles_ahead) NOT_SUPPORTED also means that the kernel is left to its launch. */
CUresult ct_function_compile(struct ct_function *function);
/* Returns the same kernel compiled for cooperative launches, borrowed from the function. Errors of ct_function_compile. */
CUresult ct_function_cooperative(struct ct_function *function, struct ct_function **out);
/* Likewise for launches with clusters of several blocks, cooperative or not. */
CUresult ct_function_clustered(struct ct_function *function, struct ct_function **out);
/* Likewise with its shared memory in device memory (struct ptx2spv_slots), for launches that need more than the device has. */
CUresult ct_function_in_memory(struct ct_function *function, struct ct_function **out);
/* Likewise without info.limits_grid, limits_objects and whole_warps. Of the result there may be a form in memory. */
CUresult ct_function_any_grid(struct ct_function *function, struct ct_function **out);
/* Likewise with a stack of this size at least, for kernels that have info.stack_bytes. */
CUresult ct_function_deeper(struct ct_function *function, uint32_t stack_bytes, struct ct_function **out);
bool ct_function_is_compiled(const struct ct_function *function);
/* INVALID_VALUE: the attribute does not exist, or cannot be set to the value; NOT_PERMITTED: a cluster size that PTX specifies. May compile the
 * function. */
CUresult ct_function_attribute(struct ct_function *function, CUfunction_attribute attribute, int *out);
/* caller: an address in the code that called the API, which decides how much shared memory a block may opt in to (ct_library_capability). */
CUresult ct_function_set_attribute(struct ct_function *function, CUfunction_attribute attribute, int value, const void *caller);
/* The dimensions of a cluster in blocks that PTX or an attribute specifies; zeros: neither does. */
void ct_function_required_cluster(const struct ct_function *function, unsigned out[3]);
/* Bytes of dynamic shared memory that a launch may request. The function must be compiled. */
unsigned ct_function_dynamic_shared_limit(const struct ct_function *function);
/* Bytes of shared memory that a block may have: what the device reports, or more if a library that sees another compute capability asked for it
 * (core/device/library_capability.def). The function must be compiled. */
unsigned ct_function_shared_limit(const struct ct_function *function);
/* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES. INVALID_VALUE: the static part and the value exceed opt_in_bytes. May compile the
 * function. */
CUresult ct_function_set_dynamic_shared(struct ct_function *function, int value, unsigned opt_in_bytes);
/* Bytes of shared memory before the dynamic part. The function must be compiled. */
unsigned ct_function_shared_base(const struct ct_function *function);
/* The largest number of threads of a block. */
unsigned ct_function_block_limit(const struct ct_function *function);

#endif
