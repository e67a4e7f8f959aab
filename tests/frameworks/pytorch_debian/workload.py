# SPDX-License-Identifier: Apache-2.0
"""PyTorch of Debian 13, whose kernels have PTX for compute capability 9.0: eager operations, linear algebra, and training of small models."""

import cudnn
import steps

cudnn.load()

import torch
from torch import nn
from torch.nn import functional

steps.framework("PyTorch", torch.__version__)
torch.manual_seed(1)
numbers = torch.randn(1000, 1000)
words = torch.randint(0, 1000, (2000,))


def step(name, compute, *inputs, tolerance=1e-5):
    """compute gets the inputs on the device or on the CPU, and returns a tensor or several."""

    def on(device):
        results = compute(*(x.detach().to(device) for x in inputs))
        results = results if isinstance(results, (list, tuple)) else [results]
        return [x.detach().cpu().to(torch.float64 if x.dtype == torch.bfloat16 else x.dtype).numpy() for x in results]

    steps.step(name, lambda: on("cuda"), lambda: on("cpu"), tolerance)


def gradients(x):
    x.requires_grad_()
    (torch.tanh(x).exp() * torch.sigmoid(-x)).sum().backward()
    return x.grad


def embedded(table, index):
    table.requires_grad_()
    rows = functional.layer_norm(functional.embedding(index, table), (table.shape[1],))
    rows.pow(3).sum().backward()
    return rows, table.grad


def train(model, optimizer, loss_of, rounds, inputs):
    """Returns the losses of some rounds of training."""
    optimizer = optimizer(model.parameters())
    values = []
    for _ in range(rounds):
        optimizer.zero_grad()
        loss = loss_of(model, *inputs)
        loss.backward()
        optimizer.step()
        values.append(loss.detach())
    return torch.stack(values)


def trained(make, optimizer, loss_of, rounds):
    """Returns what computes the losses of some rounds of training of a model, whose first weights are the same on both sides."""

    def losses(*inputs):
        torch.manual_seed(2)
        return train(make().to(inputs[0].device), optimizer, loss_of, rounds, inputs)

    return losses


def net_of_convolutions():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


class Residual(nn.Module):
    """A block of a ResNet: two convolutions with normalization beside a shortcut of stride 2."""

    def __init__(self, before, after):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(), nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, 2, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        return functional.relu(self.body(x) + self.shortcut(x))


class Reader(nn.Module):
    """A recurrent net that reads words and says one of four classes."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, 16)
        self.lstm = nn.LSTM(16, 24, batch_first=True)
        self.head = nn.Linear(24, 4)

    def forward(self, index):
        return self.head(self.lstm(self.embedding(index))[0][:, -1])


class Writer(nn.Module):
    """A transformer of two layers with causal attention, which says the next of 64 characters."""

    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(64, 32), nn.Embedding(32, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 64)

    def forward(self, index):
        length = index.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=index.device)
        return self.head(self.layers(self.token(index) + self.place(torch.arange(length, device=index.device)), mask=mask, is_causal=True))


def class_loss(model, x, y):
    return functional.cross_entropy(model(x), y)


def next_character_loss(model, text):
    return functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


def mixed_loss(model, x, y):
    """With autocast to bfloat16."""
    with torch.autocast(x.device.type, torch.bfloat16):
        return class_loss(model, x, y)


def adamw(parameters):
    return torch.optim.AdamW(parameters, 3e-3)


def written(text):
    """30 characters that a transformer trained for 20 rounds writes after the first two of each row, each the likeliest."""
    torch.manual_seed(2)
    model = Writer().to(text.device)
    train(model, adamw, next_character_loss, 20, [text])
    model.eval()
    line = text[:, :2]
    with torch.no_grad():
        for _ in range(30):
            line = torch.cat([line, model(line)[:, -1].argmax(-1, keepdim=True)], 1)
    return line


def recorded(x):
    """A CUDA graph with a matrix product and a softmax, launched three times with the result as the next input."""
    if x.device.type == "cpu":
        for _ in range(3):
            x = torch.softmax(x @ x.T, 1)
        return x
    given = x.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.softmax(given @ given.T, 1)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = torch.softmax(given @ given.T, 1)
    for _ in range(3):
        graph.replay()
        given.copy_(result)
    return result


def moments(x):
    """Moments of a million random numbers, rounded so that both sides' generators give the same."""
    torch.manual_seed(3)
    uniform, normal = torch.rand(1000000, device=x.device), torch.randn(1000000, device=x.device)
    return torch.stack([uniform.mean(), uniform.std(), normal.std(), normal.pow(4).mean() / 3]).mul(20).round() / 20


small = numbers[:256, :256].contiguous()
definite = small @ small.T + 256 * torch.eye(256)
pictures = numbers[:96].reshape(-1)[: 8 * 3 * 32 * 32].reshape(8, 3, 32, 32).contiguous()
classes = words[:8] % 10
text = (torch.arange(33)[None] * torch.tensor([1, 3, 5, 7])[:, None] + torch.arange(4)[:, None]) % 64

step("exponentials, sines and roots of a million floats", lambda x: torch.exp(torch.sin(x)) + torch.sqrt(torch.abs(x)), numbers)
step("sums, means and deviations along both axes, 1000 x 1000", lambda x: [x.sum(0), x.mean(1), x.std(0)], numbers)
step("largest numbers and where they are, 1000 x 1000", lambda x: list(x.max(1)), numbers)
step("sort of 100,000 floats, and the 50 largest", lambda x: [x.reshape(-1)[:100000].sort()[0], x.reshape(-1).topk(50)[0]], numbers, tolerance=0)
step("running sums of 1000 rows", lambda x: x.cumsum(1), numbers)
step("rows chosen by 2,000 indices, and sums by index", lambda x, i: [x[i], torch.zeros_like(x).index_add_(0, i, x[i])], numbers[:, :64].contiguous(), words)
step("different numbers and how often each occurs; what is not 0", lambda i: [*torch.unique(i % 97, return_counts=True), torch.nonzero(i % 97 == 5)], words, tolerance=0)
step("moments of a million random numbers", moments, numbers[:1])
step("softmax of 1000 rows", lambda x: torch.softmax(x, 1), numbers)
step("gradients of tanh, exp and sigmoid, a million floats", gradients, numbers)
step("embeddings, layer normalization, and their gradients", embedded, numbers[:, :64].contiguous(), words, tolerance=1e-4)
step("matrix products, 256 x 256, float, double and batched", lambda x: [x @ x, x.double() @ x.double(), torch.bmm(x.reshape(4, 64, 256), x.reshape(4, 256, 64))], small)
step("matrix products of half and bfloat16", lambda x: [x.half() @ x.half(), x.bfloat16() @ x.bfloat16()], small, tolerance=1e-2)
step("Cholesky, solve, determinant, QR, 256 x 256", lambda x: [torch.linalg.cholesky(x), torch.linalg.solve(x, x[:, :8]), torch.linalg.slogdet(x)[1][None], torch.linalg.qr(x)[1].abs()], definite, tolerance=1e-3)
step("eigenvalues and singular values, 64 x 64", lambda x: [torch.linalg.eigvalsh(x[:64, :64]), torch.linalg.svdvals(x[:64, :64])], definite, tolerance=1e-4)
step("FFT of 100 x 1024 complex numbers, and of pictures", lambda x: [torch.view_as_real(torch.fft.fft(x.reshape(-1)[: 100 * 1024].reshape(100, 1024))), torch.view_as_real(torch.fft.rfft2(x[:64, :64]))], numbers)
step("product of a sparse matrix with a vector", lambda x: (x * (x > 2)).to_sparse_csr() @ x[0], numbers, tolerance=1e-4)
step("convolution of 8 pictures, and its gradients", lambda x, k: torch.autograd.grad(functional.conv2d(x.requires_grad_(), k.requires_grad_(), padding=1).pow(2).sum(), [x, k]), pictures, numbers[0, :216].reshape(8, 3, 3, 3), tolerance=1e-4)
step("attention, 4 heads of 128 x 32, causal", lambda x: functional.scaled_dot_product_attention(*(x[k : k + 128, :128].reshape(1, 128, 4, 32).transpose(1, 2) for k in (0, 128, 256)), is_causal=True), numbers, tolerance=1e-4)
step("net of convolutions, losses of 10 rounds of Adam", trained(net_of_convolutions, lambda p: torch.optim.Adam(p, 1e-2), class_loss, 10), pictures, classes, tolerance=1e-2)
step("two residual blocks, losses of 5 rounds with momentum", trained(lambda: nn.Sequential(Residual(3, 16), Residual(16, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)), lambda p: torch.optim.SGD(p, 0.05, momentum=0.9), class_loss, 5), pictures, classes, tolerance=1e-2)
step("LSTM, losses of 5 rounds of Adam", trained(Reader, lambda p: torch.optim.Adam(p, 1e-2), class_loss, 5), words[:160].reshape(8, 20), classes % 4, tolerance=1e-3)
step("transformer, losses of 10 rounds of AdamW", trained(Writer, adamw, next_character_loss, 10), text, tolerance=1e-3)
step("transformer, text that it writes after training", written, text, tolerance=0)
step("training with autocast to bfloat16, 5 rounds", trained(lambda: nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10)), lambda p: torch.optim.SGD(p, 0.1), mixed_loss, 5), numbers[:128, :64].contiguous(), words[:128] % 10, tolerance=2e-2)
step("CUDA graph of a product and a softmax, launched three times", recorded, small, tolerance=1e-4)
steps.end()
