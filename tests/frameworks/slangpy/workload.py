# SPDX-License-Identifier: Apache-2.0
"""SlangPy: functions and kernels in Slang, which its compiler turns into CUDA C++ and NVRTC into PTX; derivatives, textures, warps."""

import pathlib
import tempfile

import steps

steps.begin()

import numpy
import slangpy as spy

steps.framework("SlangPy", "0.43.1")

SOURCE = """
float saxpy(float a, float x, float y) { return a * x + y; }

// The squared error of a sum of bumps at one place.
[Differentiable]
float bumps(float x, no_diff float y, float3 centres, float3 heights)
{
    float sum = 0;
    [ForceUnroll] for (int i = 0; i < 3; i++) sum += heights[i] * exp(-8.0 * (x - centres[i]) * (x - centres[i]));
    return (sum - y) * (sum - y);
}

struct Gradient { float3 centres; float3 heights; };
Gradient gradient(float x, float y, float3 centres, float3 heights)
{
    var c = diffPair(centres);
    var h = diffPair(heights);
    var p = diffPair(x);
    bwd_diff(bumps)(p, y, c, h, 1.0);
    return { c.d, h.d };
}

[shader("compute")][numthreads(64, 1, 1)]
void gradients(uint3 t: SV_DispatchThreadID, StructuredBuffer<float> x, StructuredBuffer<float> y, RWStructuredBuffer<float> out, uniform float3 centres, uniform float3 heights)
{
    let g = gradient(x[t.x], y[t.x], centres, heights);
    [ForceUnroll] for (int i = 0; i < 3; i++) { out[6 * t.x + i] = g.centres[i]; out[6 * t.x + 3 + i] = g.heights[i]; }
}

groupshared float tile[64];
[shader("compute")][numthreads(64, 1, 1)]
void block_sums(uint3 t: SV_DispatchThreadID, uint3 l: SV_GroupThreadID, uint3 g: SV_GroupID, StructuredBuffer<float> x, RWStructuredBuffer<float> sums)
{
    tile[l.x] = x[t.x];
    GroupMemoryBarrierWithGroupSync();
    for (uint s = 32; s > 0; s >>= 1) {
        if (l.x < s) tile[l.x] += tile[l.x + s];
        GroupMemoryBarrierWithGroupSync();
    }
    if (l.x == 0) sums[g.x] = tile[0];
}

[shader("compute")][numthreads(64, 1, 1)]
void waves(uint3 t: SV_DispatchThreadID, StructuredBuffer<uint> x, RWStructuredBuffer<uint> sums)
{
    sums[3 * t.x] = WaveActiveSum(x[t.x]);
    sums[3 * t.x + 1] = WavePrefixSum(x[t.x]);
    sums[3 * t.x + 2] = WaveActiveBallot(x[t.x] % 3 == 0).x;
}

[shader("compute")][numthreads(64, 1, 1)]
void count(uint3 t: SV_DispatchThreadID, StructuredBuffer<uint> x, RWStructuredBuffer<uint> bins) { InterlockedAdd(bins[x[t.x]], 1); }

[shader("compute")][numthreads(8, 8, 1)]
void blur(uint3 t: SV_DispatchThreadID, Texture2D<float> image, RWTexture2D<float> blurred)
{
    float sum = 0;
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++)
            sum += image[uint2(clamp(int(t.x) + i, 0, 63), clamp(int(t.y) + j, 0, 63))];
    blurred[t.xy] = sum / 9;
}

[shader("compute")][numthreads(8, 8, 1)]
void enlarge(uint3 t: SV_DispatchThreadID, Texture2D<float> image, SamplerState sampler, RWStructuredBuffer<float> larger)
{
    larger[128 * t.y + t.x] = image.SampleLevel(sampler, (float2(t.xy) + 0.5) / 128, 0);
}
"""
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "kernels.slang").write_text(SOURCE)
device = spy.create_device(type=spy.DeviceType.cuda, include_paths=[folder])
module = spy.Module.load_from_file(device, "kernels.slang")
kernels = {}

random = numpy.random.default_rng(1)
x, y = random.random((2, 100000), dtype=numpy.float32)
numbers = random.integers(0, 200, 6400, dtype=numpy.uint32)
image = random.random((64, 64), dtype=numpy.float32)
places = numpy.linspace(-1, 1, 512, dtype=numpy.float32)
CENTRES, HEIGHTS = (-0.7, 0.1, 0.6), (1.0, 0.5, 2.0)


def launch(name, threads, **arguments):
    if name not in kernels:
        kernels[name] = device.create_compute_kernel(device.load_program("kernels.slang", [name]))
    kernels[name].dispatch(threads, **arguments)


def given(values):
    return device.create_buffer(data=values, usage=spy.BufferUsage.shader_resource, struct_size=4)


def wanted(count):
    return device.create_buffer(data=numpy.zeros(count, numpy.uint32), struct_size=4, usage=spy.BufferUsage.unordered_access)


def texture(**rest):
    return device.create_texture(format=spy.Format.r32_float, width=64, height=64, **rest)


def by_kernel(name, dtype, count, threads, values):
    """What a kernel makes of one array, which it calls x, in another one."""
    out = wanted(count)
    launch(name, threads, x=given(values), **{"bins" if name == "count" else "sums": out})
    return out.to_numpy().view(dtype)


def fit(gradients):
    """Twenty steps down the gradient, from wrong centres and heights to those of the samples."""
    samples = sum(h * numpy.exp(-8 * (places - c) ** 2) for c, h in zip(CENTRES, HEIGHTS)).astype(numpy.float32)
    parameters = numpy.array([-0.5, 0.0, 0.5, 0.8, 0.8, 0.8], numpy.float32)
    for _ in range(20):
        parameters -= numpy.float32(0.3) * gradients(samples, parameters).mean(0)
    return parameters


def device_gradients(samples, parameters):
    out = wanted(6 * places.size)
    centres, heights = (spy.float3(*map(float, part)) for part in (parameters[:3], parameters[3:]))
    launch("gradients", [places.size, 1, 1], x=given(places), y=given(samples), out=out, centres=centres, heights=heights)
    return out.to_numpy().view(numpy.float32).reshape(-1, 6)


def cpu_gradients(samples, parameters):
    apart = places[:, None] - parameters[:3]
    shapes = numpy.exp(-8 * apart**2)
    error = 2 * ((parameters[3:] * shapes).sum(1) - samples)[:, None]
    return numpy.concatenate([error * parameters[3:] * shapes * 16 * apart, error * shapes], 1)


def device_blur():
    blurred = texture(usage=spy.TextureUsage.unordered_access)
    launch("blur", [64, 64, 1], image=texture(usage=spy.TextureUsage.shader_resource, data=image), blurred=blurred)
    return blurred.to_numpy()


def cpu_blur():
    padded = numpy.pad(image, 1, mode="edge")
    return sum(padded[j : j + 64, i : i + 64] for j in range(3) for i in range(3)) / 9


def device_enlarged():
    larger = wanted(128 * 128)
    arguments = {"image": texture(usage=spy.TextureUsage.shader_resource, data=image), "sampler": device.create_sampler()}
    launch("enlarge", [128, 128, 1], larger=larger, **arguments)
    return larger.to_numpy().view(numpy.float32)


def cpu_enlarged():
    """For CUDA, Slang's textures repeat the image, whatever the sampler."""
    padded = numpy.pad(image, 1, mode="wrap")
    at = (numpy.arange(128) + 0.5) / 2 + 0.5
    low, weight = at.astype(int), at % 1
    rows = padded[low] * (1 - weight)[:, None] + padded[low + 1] * weight[:, None]
    return rows[:, low] * (1 - weight) + rows[:, low + 1] * weight


def cpu_waves():
    warps = numbers.reshape(-1, 32)
    ballots = ((warps % 3 == 0) << numpy.arange(32)).sum(1).astype(numpy.uint32)
    return numpy.stack([numpy.repeat(warps.sum(1), 32), (warps.cumsum(1) - warps).ravel(), numpy.repeat(ballots, 32)], 1)


steps.step("a function, called with arrays", lambda: module.saxpy(2.0, x, y, _result="numpy"), lambda: numpy.float32(2) * x + y, 1e-6)
steps.step("bumps fitted by derivatives", lambda: fit(device_gradients), lambda: fit(cpu_gradients), 1e-4)
steps.step("sums of blocks, in shared memory", lambda: by_kernel("block_sums", numpy.float32, 100, [6400, 1, 1], x[:6400]), lambda: x[:6400].reshape(100, 64).sum(1), 1e-6)
steps.step("sums and votes of warps", lambda: by_kernel("waves", numpy.uint32, 3 * 6400, [6400, 1, 1], numbers), cpu_waves, 0)
steps.step("a histogram, by atomic additions", lambda: by_kernel("count", numpy.uint32, 200, [6400, 1, 1], numbers), lambda: numpy.bincount(numbers, minlength=200), 0)
steps.step("a blur from texture to texture", device_blur, cpu_blur, 1e-6)
steps.step("an image enlarged by a sampler", device_enlarged, cpu_enlarged, 4e-3)
steps.end()
