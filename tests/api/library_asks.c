/* SPDX-License-Identifier: Apache-2.0 */
/* A library with the file name of one of NVIDIA's (library_capability_test.c); its function has a name of its own for each of them. */
#include <cuda.h>

__attribute__((visibility("default"))) CUresult library_asks(int *value, CUdevice_attribute attribute, CUdevice device);

CUresult library_asks(int *value, CUdevice_attribute attribute, CUdevice device)
{
    return cuDeviceGetAttribute(value, attribute, device);
}
