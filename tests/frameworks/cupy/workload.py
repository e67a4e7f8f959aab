# SPDX-License-Identifier: Apache-2.0
"""CuPy: arrays as NumPy has them, on its own kernels (through NVRTC) and on NVIDIA's libraries."""

import steps

steps.begin()

import cupy
import cupyx.scipy.sparse
import numpy
import scipy.sparse

steps.framework("CuPy", cupy.__version__)

random = numpy.random.default_rng(1)
floats = random.standard_normal(1_000_000, dtype=numpy.float32)
integers = random.integers(0, 1 << 30, 200_000, dtype=numpy.int32)
square = random.standard_normal((256, 256), dtype=numpy.float32)
positive = square @ square.T + 256 * numpy.eye(256, dtype=numpy.float32)
signal = floats[: 1 << 18] + 1j * floats[1 << 18 : 1 << 19]
matrix = scipy.sparse.random(5000, 5000, density=0.002, format="csr", dtype=numpy.float32, rng=random)


def both(name, compute, *arrays, tolerance):
    """A step of one function that takes arrays of NumPy or of CuPy, and the module that it computes with."""
    on_device = [cupyx.scipy.sparse.csr_matrix(a) if scipy.sparse.issparse(a) else cupy.asarray(a) for a in arrays]
    steps.step(name, lambda: cupy.asnumpy(compute(cupy, *on_device)), lambda: compute(numpy, *arrays), tolerance)


both("sines and roots of a million floats", lambda np, a: np.sin(a) + np.sqrt(np.abs(a)), floats, tolerance=1e-6)
both("sums along both axes, 1000 x 1000", lambda np, a: np.concatenate([a.reshape(1000, 1000).sum(axis=i) for i in (0, 1)]), floats, tolerance=1e-5)
both("sort of 200,000 integers", lambda np, a: np.sort(a), integers, tolerance=0)
both("unique values, with counts, of 200,000 integers", lambda np, a: np.concatenate(np.unique(a % 5000, return_counts=True)), integers, tolerance=0)
both("running sum of 200,000 integers", lambda np, a: np.cumsum(a.astype(np.int64)), integers, tolerance=0)
both("matrix product, 256 x 256 (cuBLAS)", lambda np, a: a @ a, square, tolerance=1e-5)
both("FFT of 2^18 complex numbers (cuFFT)", lambda np, a: np.fft.fft(a), signal.astype(numpy.complex64), tolerance=1e-5)
both("2D FFT of real numbers, 512 x 512, and back (cuFFT)", lambda np, a: np.fft.irfft2(np.fft.rfft2(a.reshape(512, 512))), floats[: 1 << 18], tolerance=1e-5)
both("sparse matrix times vector, 5000 x 5000 (cuSPARSE)", lambda np, m, v: m @ v, matrix, floats[:5000], tolerance=1e-5)
both("solution of 256 equations (cuSOLVER)", lambda np, a, b: np.linalg.solve(a, b), positive, floats[:256], tolerance=1e-4)
both("Cholesky factor, 256 x 256 (cuSOLVER)", lambda np, a: np.linalg.cholesky(a), positive, tolerance=1e-5)


def moments(np, a):
    a = a.astype(np.float64)
    return np.stack([(a**n).mean() for n in (1, 2, 3, 4)])


def drawn(np):
    """cuRAND draws other numbers than NumPy: only their moments are the same, as nearly as a million numbers tell (0.01 in the fourth)."""
    return np.asarray(moments(np, np.random.RandomState(seed=5).standard_normal(1_000_000)))


steps.step("moments of a million normal random numbers (cuRAND)", lambda: cupy.asnumpy(drawn(cupy)), lambda: drawn(numpy), 0.01)

own = cupy.RawKernel(
    r"""extern "C" __global__ void blur(const float *in, float *out, int n) {
        __shared__ float part[130];
        int i = blockIdx.x * 128 + threadIdx.x;
        part[threadIdx.x + 1] = i < n ? in[i] : 0;
        if (threadIdx.x == 0) part[0] = i ? in[i - 1] : 0;
        if (threadIdx.x == 127) part[129] = i + 1 < n ? in[i + 1] : 0;
        __syncthreads();
        if (i < n) out[i] = 0.25f * part[threadIdx.x] + 0.5f * part[threadIdx.x + 1] + 0.25f * part[threadIdx.x + 2];
    }""",
    "blur",
)


def blurred():
    given, out = cupy.asarray(floats), cupy.empty_like(floats)
    own(((floats.size + 127) // 128,), (128,), (given, out, numpy.int32(floats.size)))
    return cupy.asnumpy(out)


steps.step("a kernel of its own with shared memory, a million floats", blurred, lambda: numpy.convolve(floats, [0.25, 0.5, 0.25], "same"), 1e-6)
steps.end()
