# SPDX-License-Identifier: Apache-2.0
"""Halide: pipelines for images, which its own LLVM compiles to PTX, with schedules for GPUs."""

import steps

steps.begin()

import halide as hl
import numpy

steps.framework("Halide", "21.0.0")

x, y, xo, yo, xi, yi = (hl.Var(name) for name in ("x", "y", "xo", "yo", "xi", "yi"))

random = numpy.random.default_rng(1)
# Halide's buffers do not own the arrays that they are made of.
floats = random.random((512, 768), dtype=numpy.float32)
pixels = random.integers(0, 256, (512, 512), dtype=numpy.uint8)
left, right = random.random((2, 128, 128), dtype=numpy.float32)


def blur(on_device):
    """In two passes, the first one in shared memory."""
    image = hl.BoundaryConditions.repeat_edge(hl.Buffer(floats))
    rows, both = hl.Func("rows"), hl.Func("both")
    rows[x, y] = (image[x - 1, y] + image[x, y] + image[x + 1, y]) / hl.f32(3)
    both[x, y] = (rows[x, y - 1] + rows[x, y] + rows[x, y + 1]) / hl.f32(3)
    if on_device:
        both.gpu_tile(x, y, xo, yo, xi, yi, 16, 16)
        rows.compute_at(both, xo).gpu_threads(x, y)
    return both, [768, 512]


def histogram(on_device):
    image = hl.Buffer(pixels)
    r, bins = hl.RDom([(0, 512), (0, 512)]), hl.Func("bins")
    bins[x] = hl.u32(0)
    bins[hl.i32(image[r.x, r.y])] += hl.u32(1)
    if on_device:
        bins.gpu_tile(x, xo, xi, 64)
        bins.update().atomic().gpu_tile(r.x, r.y, *(hl.RVar(name) for name in ("rxo", "ryo", "rxi", "ryi")), 16, 16)
    return bins, [256]


def product(on_device):
    a, b = hl.Buffer(left), hl.Buffer(right)
    k, sums, out = hl.RDom([(0, 128)]), hl.Func("sums"), hl.Func("out")
    sums[x, y] = hl.f32(0)
    sums[x, y] += a[k, y] * b[x, k]
    out[x, y] = sums[x, y]
    if on_device:
        out.gpu_tile(x, y, xo, yo, xi, yi, 16, 16)
        sums.compute_at(out, xi)
    return out, [128, 128]


def functions(on_device):
    out, e = hl.Func("out"), hl.f32(x) * hl.f32(0.01) + hl.f32(y) * hl.f32(0.03)
    out[x, y] = hl.sin(e) + hl.exp(-e) + hl.pow(e + hl.f32(1), hl.f32(1.7)) + hl.log(e + hl.f32(2)) + hl.floor(e) + hl.atan2(e, e + hl.f32(1)) + hl.erf(e)
    if on_device:
        out.gpu_tile(x, y, xo, yo, xi, yi, 16, 16)
    return out, [256, 256]


def bytes_of_image(on_device):
    image = hl.Buffer(pixels)
    out = hl.Func("out")
    out[x, y] = hl.u8(hl.min(hl.u16(image[x, y]) * hl.u16(3) / hl.u16(2) + hl.u16(7), hl.u16(255)))
    if on_device:
        out.gpu_tile(x, y, xo, yo, xi, yi, 32, 8)
    return out, [512, 512]


pipelines = {}


def run(make, on_device):
    if (make, on_device) not in pipelines:
        pipeline, size = make(on_device)
        target = hl.get_jit_target_from_environment()
        if on_device:
            target = target.with_feature(hl.TargetFeature.CUDA).with_feature(hl.TargetFeature.CUDACapability70)
        pipeline.compile_jit(target)
        pipelines[make, on_device] = pipeline, size
    pipeline, size = pipelines[make, on_device]
    result = pipeline.realize(size)
    result.copy_to_host()
    return numpy.array(result)


for name, make, tolerance in [
    ("a blur of 768 x 512 in two passes", blur, 1e-6),
    ("a histogram, by atomic additions", histogram, 0),
    ("matrix product of 128 x 128", product, 1e-6),
    ("elementary functions", functions, 1e-6),
    ("bytes of an image", bytes_of_image, 0),
]:
    steps.step(name, lambda make=make: run(make, True), lambda make=make: run(make, False), tolerance)
steps.end()
