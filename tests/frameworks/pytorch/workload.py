# SPDX-License-Identifier: Apache-2.0
"""PyTorch: eager operations, gradients, and training by its own kernels, whose PTX is for compute capability 3.7."""

import steps

steps.begin()

import torch

steps.framework("PyTorch", torch.__version__)
generator = torch.Generator().manual_seed(1)
numbers = torch.randn(1000, 1000, generator=generator)
words = torch.randint(0, 1000, (2000,), generator=generator)


def step(name, compute, *inputs, tolerance=1e-5):
    """compute gets the inputs on the device or on the CPU, and returns a tensor or several."""

    def on(device):
        results = compute(*(x.detach().to(device) for x in inputs))
        results = results if isinstance(results, (list, tuple)) else [results]
        return [x.detach().cpu().numpy() for x in results]

    steps.step(name, lambda: on("cuda"), lambda: on("cpu"), tolerance)


def gradients(x):
    x.requires_grad_()
    (torch.tanh(x).exp() * torch.sigmoid(-x)).sum().backward()
    return x.grad


def loss_of_regression(x, y):
    """The losses of 20 steps of gradient descent for a logistic regression."""
    weights = torch.zeros(x.shape[1], device=x.device, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=1.0, momentum=0.9)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits((x * weights).sum(1), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return torch.stack(losses)


def embedded(table, index):
    table.requires_grad_()
    rows = torch.nn.functional.layer_norm(torch.nn.functional.embedding(index, table), (table.shape[1],))
    rows.pow(3).sum().backward()
    return rows, table.grad


def convolved(x, kernel):
    return torch.nn.functional.conv2d(x, kernel, padding=1)


step("exponentials, sines and roots of a million floats", lambda x: torch.exp(torch.sin(x)) + torch.sqrt(torch.abs(x)), numbers)
step("sums, means and deviations along both axes, 1000 x 1000", lambda x: [x.sum(0), x.mean(1), x.std(0)], numbers)
step("largest numbers and where they are, 1000 x 1000", lambda x: list(x.max(1)), numbers)
step("sort of 100,000 floats", lambda x: x.reshape(-1)[:100000].sort()[0], numbers, tolerance=0)
step("running sums of 1000 rows", lambda x: x.cumsum(1), numbers)
step("rows chosen by 2,000 indices", lambda x, i: x[i], numbers[:, :64].contiguous(), words, tolerance=0)
step("softmax of 1000 rows", lambda x: torch.softmax(x, 1), numbers)
step("gradients of tanh, exp and sigmoid, a million floats", gradients, numbers)
step("embeddings, layer normalization, and their gradients", embedded, numbers[:, :64].contiguous(), words, tolerance=1e-4)
step("logistic regression, losses of 20 steps of training", loss_of_regression, numbers[:, :50].contiguous(), (numbers[:, 60] > 0).float())
step("pooling of pictures", lambda x: torch.nn.functional.max_pool2d(x, 2), numbers.reshape(10, 10, 100, 100), tolerance=0)
step("matrix product, 256 x 256 (cuBLAS 10.2, in the package)", lambda x: x @ x, numbers[:256, :256].contiguous())
step("convolution of 2 pictures (cuDNN 7.6, in the package)", convolved, numbers[:6, :256].reshape(2, 3, 16, 16), numbers[0, :216].reshape(8, 3, 3, 3))
steps.end()
