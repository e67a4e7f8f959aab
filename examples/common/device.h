/* SPDX-License-Identifier: Apache-2.0 */
/* The declarations of CUDA C++ that the kernels of examples and tests use, for clang without NVIDIA's SDK (--cuda-device-only -nocudainc
 * -nocudalib). With nvcc the SDK's own declarations are used, and this header adds nothing. */
#ifndef CUTTLE_EXAMPLES_DEVICE_H
#define CUTTLE_EXAMPLES_DEVICE_H

#ifdef __clang__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ __inline__ __attribute__((always_inline))

/* One line for each, like the rows of a table. */
/* clang-format off */
struct cuttle_sreg_tid {
    __declspec(property(get = get_x)) unsigned x;
    __declspec(property(get = get_y)) unsigned y;
    __declspec(property(get = get_z)) unsigned z;
    __device__ static unsigned get_x() { return __nvvm_read_ptx_sreg_tid_x(); }
    __device__ static unsigned get_y() { return __nvvm_read_ptx_sreg_tid_y(); }
    __device__ static unsigned get_z() { return __nvvm_read_ptx_sreg_tid_z(); }
};
struct cuttle_sreg_ntid {
    __declspec(property(get = get_x)) unsigned x;
    __declspec(property(get = get_y)) unsigned y;
    __declspec(property(get = get_z)) unsigned z;
    __device__ static unsigned get_x() { return __nvvm_read_ptx_sreg_ntid_x(); }
    __device__ static unsigned get_y() { return __nvvm_read_ptx_sreg_ntid_y(); }
    __device__ static unsigned get_z() { return __nvvm_read_ptx_sreg_ntid_z(); }
};
struct cuttle_sreg_ctaid {
    __declspec(property(get = get_x)) unsigned x;
    __declspec(property(get = get_y)) unsigned y;
    __declspec(property(get = get_z)) unsigned z;
    __device__ static unsigned get_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
    __device__ static unsigned get_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
    __device__ static unsigned get_z() { return __nvvm_read_ptx_sreg_ctaid_z(); }
};
struct cuttle_sreg_nctaid {
    __declspec(property(get = get_x)) unsigned x;
    __declspec(property(get = get_y)) unsigned y;
    __declspec(property(get = get_z)) unsigned z;
    __device__ static unsigned get_x() { return __nvvm_read_ptx_sreg_nctaid_x(); }
    __device__ static unsigned get_y() { return __nvvm_read_ptx_sreg_nctaid_y(); }
    __device__ static unsigned get_z() { return __nvvm_read_ptx_sreg_nctaid_z(); }
};
/* Not defined anywhere: only their properties are used. */
extern const __device__ cuttle_sreg_tid threadIdx;
extern const __device__ cuttle_sreg_ntid blockDim;
extern const __device__ cuttle_sreg_ctaid blockIdx;
extern const __device__ cuttle_sreg_nctaid gridDim;

static __device__ __forceinline__ float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static __device__ __forceinline__ double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static __device__ __forceinline__ float fminf(float a, float b) { return __nvvm_fmin_f(a, b); }
static __device__ __forceinline__ float fmaxf(float a, float b) { return __nvvm_fmax_f(a, b); }
static __device__ __forceinline__ float rsqrtf(float a) { return __nvvm_rsqrt_approx_f(a); }
static __device__ __forceinline__ double sqrt(double a) { return __nvvm_sqrt_rn_d(a); }
/* clang-format on */
static __device__ __forceinline__ unsigned atomicAdd(unsigned *p, unsigned v)
{
    return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
static __device__ __forceinline__ unsigned atomicMax(unsigned *p, unsigned v)
{
    return __nvvm_atom_max_gen_ui(p, v);
}
#endif

#endif
