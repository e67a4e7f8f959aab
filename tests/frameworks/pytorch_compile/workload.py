# SPDX-License-Identifier: Apache-2.0
"""PyTorch of today, whose own kernels are machine code: what torch.compile makes of models are Triton's kernels and calls of cuBLAS, which are PTX."""

import steps

steps.begin(
    # Otherwise products of matrices are timed with other shapes, too, on operands that PyTorch's own kernels make.
    TORCHINDUCTOR_SHAPE_PADDING="0",
)

import copy

import numpy
import torch
import torch._inductor.config
import triton
import triton.language as tl
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

torch._inductor.config.joint_graph_constant_folding = False  # it computes constants by PyTorch's own kernels
steps.framework("PyTorch", torch.__version__)

torch.manual_seed(1)
matrix, other = torch.randn(64, 256), torch.randn(64, 256)
images, numbers = torch.randn(4, 3, 16, 16), torch.randn(10_000)
convolutions = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)).eval()
heads = [torch.randn(2, 4, 32, 16) for _ in range(3)]
perceptron = nn.Sequential(nn.Linear(20, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4))
inputs, classes = torch.randn(64, 20), torch.randint(0, 4, (64,))


@triton.jit
def scaled_sum(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 2 * tl.load(y + i, mask=i < n), mask=i < n)


def by_triton():
    out = torch.empty(10_000, device="cuda")
    scaled_sum[(40,)](numbers.cuda(), numbers.cuda(), out, 10_000, BLOCK=256)
    return out.cpu().numpy()


def both(name, compute, arguments, tolerance):
    """A step of one function, compiled for either device; on the CPU it is computed as it is."""
    compiled = torch.compile(compute)

    def on_device():
        result = compiled(*(copy.deepcopy(argument).cuda() for argument in arguments))
        return [part.detach().cpu().numpy() for part in (result if isinstance(result, tuple) else (result,))]

    def on_cpu():
        result = compute(*arguments)
        return [part.detach().numpy() for part in (result if isinstance(result, tuple) else (result,))]

    with torch.no_grad():
        steps.step(name, on_device, on_cpu, tolerance)


def attention(q, k, v):
    with sdpa_kernel(SDPBackend.MATH):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def trained(device, wrap):
    """The losses of ten steps. The first gradient is given, since PyTorch would make it by a kernel of its own."""
    model = copy.deepcopy(perceptron).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y, one, losses = inputs.to(device), classes.to(device), torch.ones(()).to(device), []
    loss_of = wrap(lambda x, y: functional.cross_entropy(model(x), y))
    step = wrap(optimizer.step)
    for _ in range(10):
        loss = loss_of(x, y)
        loss.backward(one)
        step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    return numpy.array(losses)


steps.step("a kernel in Triton", by_triton, lambda: (3 * numbers).numpy(), 1e-6)
both("elementwise, fused", lambda a, b: (torch.sin(a) * b + torch.exp(-b)).relu(), (matrix, other), 1e-5)
both("softmax, mean and variance", lambda a: (torch.softmax(a, 1).sum(0), a.mean(), a.var(1)), (matrix,), 1e-5)
both("running sums, selected rows", lambda x: (torch.cumsum(x, 1), x[::7]), (matrix,), 1e-4)
both("matrix product (cuBLAS)", lambda a, b: a @ b.T, (matrix, other), 1e-5)
both("a net of convolutions", lambda x: convolutions.to(x.device)(x), (images,), 1e-5)
both("attention", attention, heads, 1e-5)
steps.step("training, 10 steps: losses", lambda: trained("cuda", torch.compile), lambda: trained("cpu", lambda f: f), 1e-4)
steps.end()
