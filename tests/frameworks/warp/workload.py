# SPDX-License-Identifier: Apache-2.0
"""Warp: kernels written in Python, which it compiles by its own NVRTC, and their derivatives."""

import steps

steps.begin()

import numpy
import warp as wp

# Otherwise Warp makes machine code.
wp.config.cuda_output = "ptx"
wp.config.quiet = True
wp.init()
steps.framework("Warp", wp.__version__)

random = numpy.random.default_rng(1)
floats = random.standard_normal(1_000_000, dtype=numpy.float32)
points = random.random((20_000, 3), dtype=numpy.float32)


@wp.kernel
def wave(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) + wp.sqrt(wp.abs(x[i]))


@wp.kernel
def fall(x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), dt: float):
    i = wp.tid()
    v[i] = v[i] + wp.vec3(0.0, -9.81, 0.0) * dt
    x[i] = x[i] + v[i] * dt
    if x[i][1] < 0.0:
        x[i] = wp.vec3(x[i][0], 0.0, x[i][2])
        v[i] = wp.vec3(v[i][0], -0.5 * v[i][1], v[i][2])


@wp.kernel
def near(grid: wp.uint64, x: wp.array(dtype=wp.vec3), count: wp.array(dtype=int)):
    i = wp.tid()
    found = int(0)
    for j in wp.hash_grid_query(grid, x[i], 0.05):
        if wp.length(x[i] - x[j]) < 0.05:
            found += 1
    count[i] = found


@wp.kernel
def energy(x: wp.array(dtype=wp.vec3), total: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(total, 0, wp.dot(x[i], x[i]) * wp.exp(x[i][0]))


TILE = 16


@wp.kernel
def tile_product(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float)):
    i, j = wp.tid()
    total = wp.tile_zeros(shape=(TILE, TILE), dtype=float)
    for k in range(a.shape[1] // TILE):
        wp.tile_matmul(wp.tile_load(a, (TILE, TILE), (i * TILE, k * TILE)), wp.tile_load(b, (TILE, TILE), (k * TILE, j * TILE)), total)
    wp.tile_store(c, total, (i * TILE, j * TILE))


def both(name, compute, tolerance):
    """A step of one function, which Warp runs on the device that is its scope."""

    def on(device):
        with wp.ScopedDevice(device):
            return [result.numpy() for result in compute()]

    steps.step(name, lambda: on("cuda:0"), lambda: on("cpu"), tolerance)


def waves():
    x = wp.array(floats)
    y = wp.empty_like(x)
    wp.launch(wave, dim=x.size, inputs=[x, y])
    return [y]


def falling():
    x, v = wp.array(points, dtype=wp.vec3), wp.zeros(len(points), dtype=wp.vec3)
    for _ in range(50):
        wp.launch(fall, dim=x.size, inputs=[x, v, 0.01])
    return [x, v]


def neighbours():
    x = wp.array(points, dtype=wp.vec3)
    count = wp.zeros(len(points), dtype=int)
    grid = wp.HashGrid(32, 32, 32)
    grid.build(x, 0.05)
    wp.launch(near, dim=x.size, inputs=[grid.id, x, count])
    return [count]


def slopes():
    x = wp.array(points, dtype=wp.vec3, requires_grad=True)
    total = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(energy, dim=x.size, inputs=[x, total])
    tape.backward(loss=total)
    return [x.grad]


def sorted_pairs():
    keys = numpy.zeros(200_000, dtype=numpy.int32)
    keys[:100_000] = floats[:100_000].view(numpy.int32) & 0x7FFFFFFF
    values = numpy.arange(200_000, dtype=numpy.int32)
    k, v = wp.array(keys), wp.array(values)
    wp.utils.radix_sort_pairs(k, v, 100_000)
    return [k[:100_000], v[:100_000]]


def products():
    a = wp.array(floats[:16384].reshape(128, 128))
    c = wp.zeros_like(a)
    wp.launch_tiled(tile_product, dim=(128 // TILE, 128 // TILE), inputs=[a, a, c], block_dim=64)
    return [c]


both("sines and roots of a million floats", waves, 1e-6)
both("20,000 falling points, 50 steps", falling, 1e-5)
both("neighbours of 20,000 points in a hash grid", neighbours, 0)
both("derivatives of a sum, by Warp's tape", slopes, 1e-5)
both("radix sort of 100,000 pairs", sorted_pairs, 0)
both("matrix product of 128 x 128 in tiles", products, 1e-5)
steps.end()
