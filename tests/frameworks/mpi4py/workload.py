# SPDX-License-Identifier: Apache-2.0
"""mpi4py with CuPy: two ranks hand arrays of the device to MPI. On the CPU's side they hand it NumPy's arrays."""

import os
import sys

if "OMPI_COMM_WORLD_RANK" not in os.environ:
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    os.execvp("mpirun", ["mpirun", "-n", "2", "--oversubscribe", sys.executable, __file__])

import steps

steps.begin(OMPI_MCA_mpi_yield_when_idle="1")

import cupy
import mpi4py
import numpy
from mpi4py import MPI

ranks = MPI.COMM_WORLD
rank, other = ranks.rank, 1 - ranks.rank
library = MPI.Get_library_version().split(",")[0]
steps.framework(f"mpi4py {mpi4py.__version__}, {library}, CuPy", cupy.__version__)


def finish(arrays):
    """Waits for the device: MPI does not know its streams."""
    if arrays is cupy:
        cupy.cuda.get_current_stream().synchronize()


def numbers(arrays, n, dtype):
    """Numbers that differ from rank to rank."""
    return (arrays.arange(n, dtype=dtype) * (rank + 3)) % 1009


def exchanged(arrays):
    mine = numbers(arrays, 1_000_000, "float32")
    theirs = arrays.empty_like(mine)
    finish(arrays)
    ranks.Sendrecv(mine, other, recvbuf=theirs, source=other)
    return theirs


def summed(arrays, dtype):
    mine = numbers(arrays, 100_000, dtype)
    total = arrays.empty_like(mine)
    finish(arrays)
    ranks.Allreduce(mine, total, op=MPI.SUM)
    return total


def gathered(arrays):
    mine = numbers(arrays, 50_000, "int32")
    both = arrays.empty((2, mine.size), "int32")
    finish(arrays)
    ranks.Allgather(mine, both)
    return both


def plate(arrays):
    """100 steps of Jacobi's method on 128 x 128 points, of which each rank has half of the rows, and one more of the other's."""
    half = arrays.zeros((66, 128), "float64")
    half[:, 0] = 1.0
    edge, halo = (64, 65) if rank == 0 else (1, 0)
    for _ in range(100):
        received = arrays.empty(128, "float64")
        sent = half[edge].copy()
        finish(arrays)
        ranks.Sendrecv(sent, other, recvbuf=received, source=other)
        half[halo] = received
        inner = half[1:-1, 1:-1]
        inner[...] = 0.25 * (half[:-2, 1:-1] + half[2:, 1:-1] + half[1:-1, :-2] + half[1:-1, 2:])
    return half


def both(name, compute):
    """Compares what both ranks have computed."""

    def everywhere(arrays):
        return ranks.allgather(cupy.asnumpy(compute(arrays)))

    steps.step(name, lambda: everywhere(cupy), lambda: everywhere(numpy), 0)


both("Sendrecv of a million floats", exchanged)
both("Allreduce of 100,000 integers", lambda arrays: summed(arrays, "int64"))
both("Allreduce of 100,000 doubles", lambda arrays: summed(arrays, "float64"))
both("Allgather of 50,000 integers", gathered)
both("a plate of 128 x 128 points in two halves, 100 steps of Jacobi", plate)
MPI.Finalize()
steps.end()
