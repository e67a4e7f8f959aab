/* SPDX-License-Identifier: Apache-2.0 */
/* Code: the parsed PTX of an image, and its managed variables. It belongs to no context; the modules of a library share it. It is
 * immutable, except for the memory of the variables. */
#ifndef CT_CORE_CODE_H
#define CT_CORE_CODE_H

#include "jit.h"
#include "managed_variables.h"
#include "core/base/hash.h"
#include "core/base/object.h"

struct ct_code {
    struct ct_object object; /* reference-counted, without a handle */
    struct ptx2spv_module *ptx;
    struct ct_hash hash;    /* of the PTX */
    unsigned isa, sm;       /* of the PTX: 75 means .version 7.5, sm_75 */
    unsigned max_registers; /* the lower one of the limits for each thread that the link and the load were given; 0: none */
    struct ct_managed_variables managed;
};

/* Parses and links the contents of an image of `size` bytes, or of CT_SIZE_UNKNOWN (image.h). The image is not needed afterwards.
 * INVALID_PTX, UNSUPPORTED_PTX_VERSION, NOT_SUPPORTED, OUT_OF_MEMORY; INVALID_SOURCE: a name is defined twice; errors of ct_image_read.
 * Errors inside of a kernel are found when it is compiled. */
CUresult ct_code_create(const void *image, size_t size, struct ct_jit *jit, struct ct_code **out);
/* The result code for a failure of the compiler's linker, where `n_without_ptx` parts had no PTX. */
CUresult ct_code_link_failure(enum ptx2spv_status status, unsigned n_without_ptx);
/* Returns the address of its managed variables, for the kernels of a device and for the host; 0: it has none. Errors of
 * ct_managed_variables_place. */
CUresult ct_code_managed(struct ct_code *code, struct ct_device *device, uint64_t *out_address);
/* Looks up a managed variable by name. If the variables have no memory yet, it is allocated on `device`, which may be any. NOT_FOUND,
 * and errors of ct_code_managed. */
CUresult ct_code_managed_variable(struct ct_code *code, struct ct_device *device, const char *name, uint64_t *out_address,
                                  uint64_t *out_size);

#endif
