/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: the kernels of a module. One is compiled when it is first launched or asked about, whichever thread comes first. */
#ifndef CT_CORE_FUNCTION_H
#define CT_CORE_FUNCTION_H
/* Parts: function_attributes.c, function_limits.c. */

#include "module.h"

/*   NONE ──first need──> RUNNING ──> DONE
 *    ^──out of memory──────┘  └────> FAILED: gives the same error ever after */
enum ct_compile_state { CT_COMPILE_NONE, CT_COMPILE_RUNNING, CT_COMPILE_DONE, CT_COMPILE_FAILED };

struct ct_function {
    struct ct_object object;
    struct ct_module *module;               /* a reference */
    unsigned index;                         /* in the compiler's module */
    const struct ptx2spv_kernel_decl *decl; /* borrowed from it */

    atomic_int state; /* enum ct_compile_state; written under module->lock. DONE, released, shows the two members below */
    CUresult compile_error;
    struct ptx2spv_kernel_info info;
    struct ct_kernel_image *image;

    atomic_int max_dynamic_shared; /* bytes that a launch may ask for; -1: what the device allows unasked */
    atomic_int carveout;           /* percent, a hint; -1 none */

    bool is_cooperative;              /* compiled for cooperative launches: another function's `cooperative` */
    struct ct_function *cooperative;  /* the same kernel, for those; without a handle; NULL until needed; guarded by module->lock */
    struct ct_launch_setup *setup; /* of the launch calls of CUDA 2 (launch_setup.c); NULL until used; guarded by module->lock */
};

/* Makes the function of kernel `index` and publishes it; the caller gets a reference. */
CUresult ct_function_create(struct ct_module *module, unsigned index, struct ct_function **out);
/* Takes its handle and the caller's reference away. */
void ct_function_retire(struct ct_function *function);

void ct_function_release(struct ct_function *function); /* what ct_function_lookup gives; takes NULL */

/* Compiles it unless that was done. The caller holds no lock. NOT_SUPPORTED, INVALID_PTX, OUT_OF_MEMORY and what a backend gives. */
CUresult ct_function_compile(struct ct_function *function);
/* The same kernel as cooperative launches take it, compiled; borrowed from the function. What ct_function_compile gives. */
CUresult ct_function_cooperative(struct ct_function *function, struct ct_function **out);
bool ct_function_is_compiled(const struct ct_function *function);
/* INVALID_VALUE: no such attribute, or one that cannot be set to that; NOT_SUPPORTED: clusters. May compile. */
CUresult ct_function_attribute(struct ct_function *function, CUfunction_attribute attribute, int *out);
CUresult ct_function_set_attribute(struct ct_function *function, CUfunction_attribute attribute, int value);
/* Bytes of dynamic shared memory that a launch may ask for. The function is compiled. */
unsigned ct_function_dynamic_shared_limit(const struct ct_function *function);
/* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES. INVALID_VALUE: more than the device has beside the static part. May compile. */
CUresult ct_function_set_dynamic_shared(struct ct_function *function, int value);
/* Bytes of shared memory before the dynamic part. The function is compiled. */
unsigned ct_function_shared_base(const struct ct_function *function);
/* Threads that a block may have. */
unsigned ct_function_block_limit(const struct ct_function *function);

#endif
