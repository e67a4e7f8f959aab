# SPDX-License-Identifier: Apache-2.0
"""Dr.Jit, on which Mitsuba 3 is built: it writes PTX itself, on the CPU side LLVM's language."""

import glob
import os
import re

import steps

steps.begin()

# The CPU side wants LLVM 15 or newer, and finds libLLVM.so only.
found = [(int(match[1]), path) for path in glob.glob("/usr/lib/*/libLLVM*") if (match := re.search(r"libLLVM(?:-|\.so\.)(\d+)", path))]
if found:
    os.environ.setdefault("DRJIT_LIBLLVM_PATH", max(found)[1])

import drjit as dr
import numpy

steps.framework("Dr.Jit", dr.__version__)

floats = numpy.random.default_rng(1).random(200_000, dtype=numpy.float32)


def waves(m):
    x = m.Float(floats)
    return dr.sin(x) * dr.exp(-x) + dr.sqrt(x) + dr.log(x + 1) + dr.erf(x)


def random_numbers(m):
    """Those of PCG32, a histogram of them by atomic additions, and those below a tenth."""
    numbers = m.PCG32(size=100_000).next_float32()
    histogram = dr.zeros(m.UInt32, 16)
    dr.scatter_reduce(dr.ReduceOp.Add, histogram, m.UInt32(1), m.UInt32(numbers * 16))
    return [numbers, histogram, dr.compress(numbers < 0.1)]


def sums(m):
    x = dr.arange(m.UInt32, 100_000)
    return [dr.prefix_sum(x % 97), dr.sum(x % 31), dr.max(x ^ 12345), dr.block_sum(x, 1000)]


def loop(m):
    """Of lanes that need different numbers of iterations (Collatz)."""
    x, n = dr.while_loop(
        (dr.arange(m.UInt32, 20_000) + 1, dr.zeros(m.UInt32, 20_000)),
        lambda x, n: x > 1,
        lambda x, n: (dr.select((x & 1) == 0, x // 2, 3 * x + 1), n + 1),
    )
    return n


def calls(m):
    """By addresses of functions."""
    functions = [lambda x: x * 2, dr.sin, lambda x: dr.sqrt(x) + 1, lambda x: x * x]
    return dr.switch(dr.arange(m.UInt32, len(floats)) % 5 % 4, functions, m.Float(floats))


def derivatives(m):
    x = m.ad.Float(floats[:1000])
    dr.enable_grad(x)
    dr.backward(dr.sum(dr.sin(x) * x))
    return dr.grad(x)


def texture(m):
    """The device filters with weights of 8 bits."""
    image = m.Texture2f(m.TensorXf(floats[: 64 * 64].reshape(64, 64, 1)))
    at = m.Array2f(floats[:10_000], floats[10_000:20_000])
    return [image.eval(at)[0], image.eval_cubic(at)[0]]


def doubles(m):
    x = m.Float64(floats.astype(numpy.float64))
    return [dr.sum(dr.sqrt(x)), dr.fma(x, x, -x) / (x + 3)]


WORK = [
    ("elementary functions of 200,000 floats", waves, 1e-6),
    ("random numbers, their histogram, and some of them", random_numbers, 0),
    ("prefix sums and reductions", sums, 0),
    ("a loop of different lengths", loop, 0),
    ("calls by address", calls, 1e-6),
    ("derivatives", derivatives, 1e-6),
    ("textures, linear and cubic", texture, 4e-3),
    ("double precision", doubles, 1e-14),
]


def on(module, compute):
    result = compute(module)
    parts = result if isinstance(result, list) else [result]
    return [numpy.array(part) for part in parts]


for name, compute, tolerance in WORK:
    steps.step(name, lambda compute=compute: on(dr.cuda, compute), lambda compute=compute: on(dr.llvm, compute), tolerance)
steps.end()
