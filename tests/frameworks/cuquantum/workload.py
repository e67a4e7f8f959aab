# SPDX-License-Identifier: Apache-2.0
"""cuQuantum and cuTENSOR, NVIDIA's libraries: state vectors (cuStateVec), products of tensors (cuTENSOR), and networks of them (cuTensorNet)."""

import steps

steps.begin()

import ctypes
import pathlib
import sysconfig

# CuPy looks for cuTENSOR, and cuTensorNet for cuSOLVER, where the loader does.
for name in ("nvidia/cublas/lib/libcublasLt.so.12", "nvidia/cublas/lib/libcublas.so.12", "nvidia/nvjitlink/lib/libnvJitLink.so.12", "nvidia/cusparse/lib/libcusparse.so.12",
             "nvidia/cusolver/lib/libcusolver.so.11", "cutensor/lib/libcutensor.so.2", "cutensor/lib/libcutensorMg.so.2"):
    ctypes.CDLL(str(pathlib.Path(sysconfig.get_path("purelib")) / name), ctypes.RTLD_GLOBAL)

import cupy
import cuquantum
import numpy
from cuquantum import ComputeType, cudaDataType
from cuquantum.bindings import custatevec
from cuquantum.tensornet import contract
from cupyx import cutensor

steps.framework("cuQuantum", cuquantum.__version__)

QUBITS = 14
random = numpy.random.default_rng(1)
unitaries = [numpy.linalg.qr(random.standard_normal((4, 4)) + 1j * random.standard_normal((4, 4)))[0].astype(numpy.complex64) for _ in range(40)]
pairs = [random.choice(QUBITS, 2, replace=False) for _ in unitaries]
draws = numpy.sort(random.random(1000))
a, b, c = random.standard_normal((8, 16, 12)), random.standard_normal((12, 16, 20)), random.standard_normal((20, 8, 9))


def initial():
    state = numpy.zeros(2**QUBITS, numpy.complex64)
    state[0] = 1
    return state


def applied_on_cpu():
    """Index bit 0, which varies fastest, is the last axis; of a matrix's two bits the first target is the lower one."""
    state = initial().reshape([2] * QUBITS)
    for matrix, pair in zip(unitaries, pairs):
        axes = [QUBITS - 1 - pair[1], QUBITS - 1 - pair[0]]
        state = numpy.moveaxis(numpy.tensordot(matrix.reshape(2, 2, 2, 2), state, axes=([2, 3], axes)), [0, 1], axes)
    return state.reshape(-1)


def apply(handle):
    state = cupy.asarray(initial())
    for matrix, pair in zip(unitaries, pairs):
        custatevec.apply_matrix(handle, state.data.ptr, cudaDataType.CUDA_C_32F, QUBITS, matrix.ctypes.data, cudaDataType.CUDA_C_32F, custatevec.MatrixLayout.ROW, 0,
                                [int(bit) for bit in pair], 2, [], [], 0, ComputeType.COMPUTE_32F, 0, 0)
    return state


def applied():
    handle = custatevec.create()
    state = apply(handle).get()
    custatevec.destroy(handle)
    return state


def sampled():
    """The sum of the probabilities of even parity of two bits, and 1000 samples."""
    handle = custatevec.create()
    state = apply(handle)
    even, _ = custatevec.abs2sum_on_z_basis(handle, state.data.ptr, cudaDataType.CUDA_C_32F, QUBITS, 1, 1, [0, 1], 2)
    sampler, size = custatevec.sampler_create(handle, state.data.ptr, cudaDataType.CUDA_C_32F, QUBITS, draws.size)
    workspace, samples = cupy.empty(max(size, 1), cupy.uint8), numpy.empty(draws.size, numpy.int64)
    custatevec.sampler_preprocess(handle, sampler, workspace.data.ptr, size)
    custatevec.sampler_sample(handle, sampler, samples.ctypes.data, list(range(QUBITS)), QUBITS, draws.ctypes.data, draws.size, custatevec.SamplerOutput.RANDNUM_ORDER)
    custatevec.sampler_destroy(sampler)
    custatevec.destroy(handle)
    return [even, samples / 2**QUBITS]


def sampled_on_cpu():
    probabilities = abs(applied_on_cpu()) ** 2
    parity = numpy.array([bin(index & 3).count("1") % 2 for index in range(2**QUBITS)])
    return [probabilities[parity == 0].sum(), numpy.searchsorted(numpy.cumsum(probabilities, dtype=numpy.float64), draws) / 2**QUBITS]


def contracted():
    out = cupy.zeros((8, 20))
    return cutensor.contraction(1.0, cupy.asarray(a), ("i", "j", "k"), cupy.asarray(b), ("k", "j", "l"), 0.0, out, ("i", "l")).get()


steps.step("40 gates on 14 qubits (cuStateVec)", applied, applied_on_cpu, 1e-5)
steps.step("sums and samples of its probabilities", sampled, sampled_on_cpu, 1e-3)
steps.step("a product over two indices (cuTENSOR)", contracted, lambda: numpy.einsum("ijk,kjl->il", a, b), 1e-12)
steps.step("sums over two indices (cuTENSOR)", lambda: cutensor.reduction(1.0, cupy.asarray(a), ("i", "j", "k"), 0.0, cupy.zeros(8), ("i",)).get(), lambda: a.sum((1, 2)), 1e-12)
steps.step("a network of three tensors (cuTensorNet)", lambda: contract("ijk,kjl,lim->m", *map(cupy.asarray, (a, b, c))).get(), lambda: numpy.einsum("ijk,kjl,lim->m", a, b, c), 1e-12)
steps.end()
