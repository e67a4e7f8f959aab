/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of kernels that are also atomic with respect to the host. On CPU devices these are all of PTX's: kernels use the
 * processor's own instructions, or loops of its compare-and-swap. No API reports them for a GPU. */
#include "device.h"
#include "core/base/log.h"

#define CT_CHANNEL "device"

#define BOTH_SIGNS (CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED)
#define WIDTHS (CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64)

/* PTX ISA, atom and red: the types of each operation. Floats only have add; they have no minimum or maximum. */
static const unsigned ptx_has[CU_ATOMIC_OPERATION_MAX] = {
    [CU_ATOMIC_OPERATION_INTEGER_ADD] = BOTH_SIGNS | CU_ATOMIC_CAPABILITY_REDUCTION | WIDTHS,
    [CU_ATOMIC_OPERATION_INTEGER_MIN] = BOTH_SIGNS | CU_ATOMIC_CAPABILITY_REDUCTION | WIDTHS,
    [CU_ATOMIC_OPERATION_INTEGER_MAX] = BOTH_SIGNS | CU_ATOMIC_CAPABILITY_REDUCTION | WIDTHS,
    [CU_ATOMIC_OPERATION_INTEGER_INCREMENT] =
        CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_REDUCTION | CU_ATOMIC_CAPABILITY_SCALAR_32,
    [CU_ATOMIC_OPERATION_INTEGER_DECREMENT] =
        CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_REDUCTION | CU_ATOMIC_CAPABILITY_SCALAR_32,
    [CU_ATOMIC_OPERATION_AND] = BOTH_SIGNS | CU_ATOMIC_CAPABILITY_REDUCTION | WIDTHS,
    [CU_ATOMIC_OPERATION_OR] = BOTH_SIGNS | CU_ATOMIC_CAPABILITY_REDUCTION | WIDTHS,
    [CU_ATOMIC_OPERATION_XOR] = BOTH_SIGNS | CU_ATOMIC_CAPABILITY_REDUCTION | WIDTHS,
    [CU_ATOMIC_OPERATION_EXCHANGE] = BOTH_SIGNS | WIDTHS,
    [CU_ATOMIC_OPERATION_CAS] = BOTH_SIGNS | WIDTHS,
    [CU_ATOMIC_OPERATION_FLOAT_ADD] = CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_REDUCTION | WIDTHS,
};

CUresult ct_atomics_check(const CUatomicOperation *operations, unsigned count)
{
    if (!operations || count == 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%u atomic operations at %p", count, (const void *)operations);
    for (unsigned i = 0; i < count; i++)
        if ((unsigned)operations[i] >= CU_ATOMIC_OPERATION_MAX)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "unknown atomic operation %d", (int)operations[i]);
    return CUDA_SUCCESS;
}

unsigned ct_atomics_with_host(const struct ct_device *device, CUatomicOperation operation)
{
    return ct_device_limit(device, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED) ? ptx_has[operation] : 0;
}
