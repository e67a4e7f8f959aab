# SPDX-License-Identifier: Apache-2.0
"""CUDA Python (cuda.core): NVIDIA's own objects for Python. Kernels in C++ become machine code by NVRTC and nvJitLink, of which `cuttle run` makes PTX."""

import steps

steps.begin()

import cuda.core
import numpy
from cuda.core import (
    Device,
    DeviceMemoryResource,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Linker,
    LinkerOptions,
    Program,
    ProgramOptions,
    VirtualMemoryResource,
    launch,
)

steps.framework("cuda.core", cuda.core.__version__)

N = 100_000
floats = numpy.random.default_rng(1).standard_normal(N, dtype=numpy.float32)
device = Device()
device.set_current()
stream = device.create_stream()
pinned = LegacyPinnedMemoryResource()
config = LaunchConfig(grid=(N + 255) // 256, block=256)

SOURCE = """
template <typename T> __global__ void saxpy(T a, const T *x, T *y, unsigned long n)
{
    for (unsigned long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] += a * x[i];
}
"""
KERNEL = """
extern "C" __device__ float shape(float);
extern "C" __global__ void shaped(float *x, unsigned long n)
{
    unsigned long i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = shape(x[i]);
}
"""
FUNCTION = 'extern "C" __device__ float shape(float x) { return x * x - 1; }'
LOOP = """
extern "C" __global__ void halve(float *x, unsigned long n)
{
    unsigned long i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= 0.5f;
}
"""


def compiled(source, **options):
    return Program(source, "c++", ProgramOptions(std="c++17", arch=f"sm_{device.arch}", **options)).compile


def on_host(buffer):
    """The floats of a buffer, by way of page-locked memory."""
    host = pinned.allocate(buffer.size)
    buffer.copy_to(host, stream=stream)
    stream.sync()
    result = numpy.from_dlpack(host).view(numpy.float32)[:N].copy()
    buffer.close(stream)
    return result


def filled(resource, values):
    """A buffer of this memory resource with these floats at its beginning: those of virtual memory are larger."""
    buffer = resource.allocate(values.nbytes, stream=stream)
    host = pinned.allocate(buffer.size)
    numpy.from_dlpack(host).view(numpy.float32)[: values.size] = values
    buffer.copy_from(host, stream=stream)
    stream.sync()
    return buffer


def template():
    code = compiled(SOURCE)("cubin", name_expressions=("saxpy<float>",))
    x, y = filled(device.memory_resource, floats), filled(device.memory_resource, floats)
    launch(stream, config, code.get_kernel("saxpy<float>"), numpy.float32(3), x, y, numpy.uint64(N))
    return on_host(y)


def linked(kind, **options):
    """The kernel and its function, compiled one by one."""
    parts = [compiled(source, relocatable_device_code=True, **options)(kind) for source in (KERNEL, FUNCTION)]
    code = Linker(*parts, options=LinkerOptions(arch=f"sm_{device.arch}", **options)).link("cubin")
    x = filled(device.memory_resource, floats)
    launch(stream, config, code.get_kernel("shaped"), x, numpy.uint64(N))
    return on_host(x)


def graph():
    """A captured graph of three launches, launched twice."""
    kernel, x = compiled(LOOP)("cubin").get_kernel("halve"), filled(device.memory_resource, floats)
    builder = stream.create_graph_builder().begin_building()
    for _ in range(3):
        launch(builder, config, kernel, x, numpy.uint64(N))
    captured = builder.end_building().complete()
    captured.launch(stream)
    captured.launch(stream)
    return on_host(x)


def memory(resource):
    kernel, x = compiled(LOOP)("cubin").get_kernel("halve"), filled(resource, floats)
    launch(stream, config, kernel, x, numpy.uint64(N))
    return on_host(x)


steps.step("a template, by its name", template, lambda: floats + 3 * floats, 1e-6)
steps.step("two parts, linked", lambda: linked("cubin"), lambda: floats * floats - 1, 1e-6)
steps.step("two parts, optimized at link time", lambda: linked("ltoir", link_time_optimization=True), lambda: floats * floats - 1, 1e-6)
steps.step("a captured graph", graph, lambda: floats / 64, 0)
steps.step("memory of a pool of its own", lambda: memory(DeviceMemoryResource(device)), lambda: floats / 2, 0)
steps.step("virtual memory", lambda: memory(VirtualMemoryResource(device)), lambda: floats / 2, 0)
steps.end()
