# SPDX-License-Identifier: Apache-2.0
"""What the workloads of tests/frameworks share: steps that compute the same on the device and on the CPU.

A workload says begin() before it imports its framework, step() for everything that it computes, and end(). Each step writes one line that
tests/frameworks/run reads: MARK, then JSON. A step that fails does not end the workload, since the next one may need less."""

import ctypes
import json
import os
import pathlib
import sys
import time
import traceback

import numpy

MARK = "framework-step:"
PTXAS_FOLDER = pathlib.Path(__file__).resolve().parents[3] / "packaging" / "ptx"  # has bin/ptxas, which hands PTX on as it is
outcomes = []


def say(**what):
    """Of several ranks of MPI the first one says what all do."""
    if os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0":
        print(MARK, json.dumps(what), flush=True)


def begin(**settings):
    """Sets environment variables that the framework needs, and names them, since users need them, too."""
    os.environ.update(settings)
    say(settings=[f"{name}={value}" for name, value in settings.items()])


def framework(name, version):
    """Says what the steps run on: the framework, and the device by the name that the driver gives it."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device = ctypes.create_string_buffer(100)
    if cuda.cuInit(0) or cuda.cuDeviceGetName(device, len(device), 0):
        raise SystemExit("the driver has no device")
    say(framework=f"{name} {version}", device=device.value.decode())


def flat(result):
    """All numbers of a result, which is an array, a number, or a list, tuple or dictionary of results."""
    if isinstance(result, dict):
        result = [result[key] for key in sorted(result)]
    if isinstance(result, (list, tuple)):
        return numpy.concatenate([flat(part) for part in result]) if result else numpy.zeros(0)
    return numpy.asarray(result).ravel()


def difference(got, want):
    """The largest difference, relative to the largest number of the CPU's result. What is not finite must be the same on both sides."""
    got, want = flat(got), flat(want)
    if got.shape != want.shape:
        raise AssertionError(f"{got.size} numbers instead of {want.size}")
    if not want.any():
        raise AssertionError("the CPU's result has no number but 0")
    same = (got == want) | ((got != got) & (want != want))
    if same.all():
        return 0.0
    largest = numpy.abs(want[numpy.isfinite(want)]).max(initial=0)
    got, want = (numpy.where(same, 0, x).astype(numpy.complex128) for x in (got, want))
    worst = numpy.abs(got - want).max() / (largest or 1.0)
    return float(worst) if numpy.isfinite(worst) else float("inf")


def timed(compute):
    start = time.perf_counter()
    result = compute()
    return result, time.perf_counter() - start


def step(name, device, cpu, tolerance):
    """Computes device() twice (the first time with all compilations) and cpu() twice, and compares their results. Both return only when all is
    computed, and give the same numbers at each call. tolerance 0 means: the same bits."""
    say(step=name, state="begins")
    try:
        want, _ = timed(cpu)
        _, cpu_s = timed(cpu)
        first, first_s = timed(device)
        again, again_s = timed(device)
        worst = max(difference(first, want), difference(again, want))
        outcomes.append(worst <= tolerance)
        say(step=name, state="right" if outcomes[-1] else "wrong", worst=worst, tolerance=tolerance, first_s=first_s, again_s=again_s, cpu_s=cpu_s)
    except Exception as error:  # whatever the framework raises is the result
        outcomes.append(False)
        traceback.print_exc()
        say(step=name, state="refused", error=f"{type(error).__name__}: {error}")


def end():
    """Ends the workload. The steps count only if Cuttle's library, and no other libcuda.so, was in the process."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        say(libraries=sorted({line.split(maxsplit=5)[5].strip() for line in maps if "/libcuda.so" in line}))
    sys.stdout.flush()
    # Some frameworks crash in their own clean-up on any device; what counts has been said.
    os._exit(0 if outcomes and all(outcomes) else 1)
