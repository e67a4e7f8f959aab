# SPDX-License-Identifier: Apache-2.0
"""numba: kernels written in Python, compiled to PTX by LLVM, beside the same loops compiled for the CPU."""

import steps

steps.begin()

import math

import numba
import numba_cuda
import numpy
from numba import cuda, float32, njit

steps.framework("numba-cuda", f"{numba_cuda.__version__}, numba {numba.__version__}")

random = numpy.random.default_rng(1)
floats = random.standard_normal(1_000_000, dtype=numpy.float32)
square = random.standard_normal((256, 256), dtype=numpy.float32)
TILE = 16


@cuda.jit
def wave(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = math.sin(x[i]) + math.sqrt(abs(x[i]))


@cuda.jit
def histogram(x, bins):
    """Counts in shared memory, then adds the block's counts."""
    part = cuda.shared.array(64, numba.int32)
    if cuda.threadIdx.x < 64:
        part[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(part, min(63, max(0, int(x[i] * 8 + 32))), 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < 64:
        cuda.atomic.add(bins, cuda.threadIdx.x, part[cuda.threadIdx.x])


@cuda.jit
def product(a, b, c):
    left, right = cuda.shared.array((TILE, TILE), float32), cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = float32(0)
    for k in range(0, a.shape[1], TILE):
        left[y, x] = a[row, k + x]
        right[y, x] = b[k + y, column]
        cuda.syncthreads()
        for i in range(TILE):
            total += left[y, i] * right[i, x]
        cuda.syncthreads()
    c[row, column] = total


@cuda.jit
def mandelbrot(counts):
    """No point is where rounding alone decides, since products and sums are fused on the device only."""
    x, y = cuda.grid(2)
    if x < counts.shape[1] and y < counts.shape[0]:
        counts[y, x] = escape(-2 + 3 * (x + 0.3) / counts.shape[1], -1 + 2 * (y + 0.3) / counts.shape[0])


def escape_of(real, imaginary):
    c = complex(real, imaginary)
    z = 0j
    for n in range(100):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag >= 4:
            return n
    return 100


cube = cuda.declare_device("cube", "float32(float32)", link=cuda.CUSource('extern "C" __device__ int cube(float *out, float x) { *out = x * x * x; return 0; }'))


def cubes_of(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = cube(x[i])


cubes, cubes_lto = cuda.jit(cubes_of), cuda.jit(cubes_of, lto=True)
escape = cuda.jit(device=True)(escape_of)
add = cuda.reduce(lambda a, b: a + b)
escape_on_cpu = njit(escape_of)


@njit
def mandelbrot_on_cpu(height, width):
    counts = numpy.empty((height, width), numpy.int32)
    for y in range(height):
        for x in range(width):
            counts[y, x] = escape_on_cpu(-2 + 3 * (x + 0.3) / width, -1 + 2 * (y + 0.3) / height)
    return counts


@njit
def wave_on_cpu(x):
    return numpy.sin(x) + numpy.sqrt(numpy.abs(x))


@njit
def histogram_on_cpu(x):
    bins = numpy.zeros(64, numpy.int32)
    for value in x:
        bins[min(63, max(0, int(value * 8 + 32)))] += 1
    return bins


def launched(kernel, grid, block, result, *arguments):
    out = cuda.to_device(result)
    kernel[grid, block](*arguments, out)
    return out.copy_to_host()


steps.step("sines and roots of a million floats", lambda: launched(wave, 3907, 256, numpy.zeros_like(floats), floats), lambda: wave_on_cpu(floats), 1e-6)
steps.step("histogram of a million floats", lambda: launched(histogram, 64, 256, numpy.zeros(64, numpy.int32), floats), lambda: histogram_on_cpu(floats), 0)
steps.step(
    "matrix product, 256 x 256, in tiles", lambda: launched(product, (16, 16), (TILE, TILE), numpy.zeros_like(square), square, square), lambda: square @ square, 1e-5
)
steps.step("sum of a million doubles (cuda.reduce)", lambda: add(floats.astype(numpy.float64)), lambda: floats.sum(dtype=numpy.float64), 1e-10)
steps.step(
    "Mandelbrot set, 300 x 200, complex doubles", lambda: launched(mandelbrot, (19, 13), (16, 16), numpy.zeros((200, 300), numpy.int32)), lambda: mandelbrot_on_cpu(200, 300), 0
)
steps.step("a function in CUDA C++, linked (nvJitLink)", lambda: launched(cubes, 3907, 256, numpy.zeros_like(floats), floats), lambda: floats**3, 1e-6)
steps.step("the same, optimized at link time", lambda: launched(cubes_lto, 3907, 256, numpy.zeros_like(floats), floats), lambda: floats**3, 1e-6)
steps.end()
