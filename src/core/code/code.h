/* SPDX-License-Identifier: Apache-2.0 */
/* Code: the PTX of an image, parsed, and its managed variables. It belongs to no context; the modules of a library share one. Never
 * changed once it is made, but for the variables' memory. */
#ifndef CT_CORE_CODE_H
#define CT_CORE_CODE_H

#include "jit.h"
#include "managed_variables.h"
#include "core/base/object.h"

struct ct_code {
    struct ct_object object; /* counted, without a handle */
    struct ptx2spv_module *ptx;
    unsigned isa, sm; /* of the PTX: 75 is .version 7.5, sm_75 */
    struct ct_managed_variables managed;
};

/* Parses and links what an image holds: of `size` bytes, or of CT_SIZE_UNKNOWN (image.h). The image may go afterwards. INVALID_PTX,
 * UNSUPPORTED_PTX_VERSION, NOT_SUPPORTED, OUT_OF_MEMORY; INVALID_SOURCE: a name is defined twice; what ct_image_read gives. What is wrong
 * inside of a kernel is found when it is compiled. */
CUresult ct_code_create(const void *image, size_t size, struct ct_jit *jit, struct ct_code **out);
/* The code for a failure of the compiler's linker, where `n_lacking` parts had no PTX. */
CUresult ct_code_refuse(enum ptx2spv_status status, unsigned n_lacking);
/* Where its managed variables are for the kernels of a device and for the host; 0: it has none. What ct_managed_variables_place gives. */
CUresult ct_code_managed(struct ct_code *code, struct ct_device *device, uint64_t *out_address);
/* The managed variable of that name. Any device will do to make them on, if that is still to be done. NOT_FOUND, and what
 * ct_code_managed gives. */
CUresult ct_code_managed_variable(struct ct_code *code, struct ct_device *device, const char *name, uint64_t *out_address,
                                  uint64_t *out_size);

#endif
