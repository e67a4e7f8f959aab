# SPDX-License-Identifier: Apache-2.0
"""JAX: functions that XLA compiles to PTX, and a small transformer that learns."""

import functools
import pathlib

import steps

steps.begin(
    # XLA runs CUDA_ROOT/bin/ptxas.
    CUDA_ROOT=str(steps.PTXAS_FOLDER),
    # Without the last flag XLA tries all algorithms of cuBLAS and cuDNN, which takes lavapipe's compiler minutes.
    XLA_FLAGS="--xla_gpu_enable_libnvptxcompiler=false --xla_gpu_enable_libnvjitlink=false --xla_gpu_autotune_level=0",
    # JAX's check of versions asks CUPTI, which does not start on Cuttle.
    JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1",
    JAX_PLATFORMS="cuda,cpu",
    # Otherwise three quarters of the device's memory, which is the machine's on CPU devices.
    XLA_PYTHON_CLIENT_PREALLOCATE="false",
)

import jax
import jax._src.hardware_utils
import jax.numpy as jnp

# JAX tries CUDA only if NVIDIA's kernel module has made one of these files.
jax._src.hardware_utils._NVIDIA_GPU_DEVICES.append("/dev/null")
jax.config.update("jax_default_matmul_precision", "highest")

cuda, cpu = jax.devices("cuda")[0], jax.devices("cpu")[0]
steps.framework("JAX", jax.__version__)


def both(name, compute, *arguments, tolerance):
    """A step of one function, compiled for either device, whose arguments are made on the CPU."""

    def on(device):
        results = jax.tree.leaves(compiled(*jax.device_put(arguments, device)))
        assert all(result.devices() == {device} for result in results), "computed elsewhere"
        return jax.device_get(results)

    compiled = jax.jit(compute)
    steps.step(name, functools.partial(on, cuda), functools.partial(on, cpu), tolerance)


with jax.default_device(cpu):
    key = jax.random.key(1)
    a = jax.random.normal(key, (256, 256))
    words = jax.random.randint(key, (100_000,), 0, 1 << 30)
    image = jax.random.normal(key, (4, 32, 32, 8))
    filters = jax.random.normal(key, (3, 3, 8, 16)) / 8

both("jit: sines, roots and a sum along an axis, 256 x 256", lambda x: (jnp.sin(x) + jnp.sqrt(jnp.abs(x))).sum(axis=0), a, tolerance=1e-5)
both("random numbers (threefry), 100,000 words", lambda seed: jax.random.bits(jax.random.key(seed), (100_000,)), 7, tolerance=0)
both("matrix product, 256 x 256 (cuBLAS)", lambda x: x @ x.T, a, tolerance=1e-5)
both("grad of a function of a matrix product", jax.grad(lambda x: jnp.tanh(x @ x / 256).sum()), a, tolerance=1e-5)
both("second derivatives (hessian) of a function of 8 numbers", jax.hessian(lambda x: jnp.sum(jnp.sin(x) * jnp.exp(x[::-1]))), a[0, :8], tolerance=1e-5)
both("scan: a recurrence of 200 steps", lambda x: jax.lax.scan(lambda c, y: (jnp.tanh(c + y), c.sum()), x[0], x[1:201])[1], a, tolerance=1e-4)
both("sort of 100,000 integers", jnp.sort, words, tolerance=0)
both("FFT of 256 x 256 (cuFFT)", lambda x: jnp.fft.fft2(x), a, tolerance=1e-5)
both("Cholesky factor and solution, 256 x 256 (cuSOLVER)", lambda x: jax.scipy.linalg.solve(x @ x.T + 256 * jnp.eye(256), x[0], assume_a="pos"), a, tolerance=1e-4)


def convolve(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


both("convolution of 4 pictures of 32 x 32, and its gradients (cuDNN)", jax.grad(lambda x, w: jnp.tanh(convolve(x, w)).sum(), argnums=(0, 1)), image, filters, tolerance=1e-4)

# A transformer of two layers learns to predict the next letter of a text.
text = jnp.array(list(pathlib.Path(__file__).read_bytes()[:1024])).reshape(16, 64) % 128
WIDTH, HEADS, LAYERS = 64, 4, 2


def parameters(key):
    def dense(rows, columns):
        nonlocal key
        key, part = jax.random.split(key)
        return jax.random.normal(part, (rows, columns)) * rows**-0.5

    layers = [{"qkv": dense(WIDTH, 3 * WIDTH), "out": dense(WIDTH, WIDTH), "up": dense(WIDTH, 4 * WIDTH), "down": dense(4 * WIDTH, WIDTH)} for _ in range(LAYERS)]
    return {"letters": dense(128, WIDTH), "places": dense(64, WIDTH), "layers": layers}


def normalized(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(x, layer):
    count, length, _ = x.shape
    q, k, v = (y.reshape(count, length, HEADS, -1).swapaxes(1, 2) for y in jnp.split(normalized(x) @ layer["qkv"], 3, axis=-1))
    weights = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    weights = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((length, length), bool)), weights, -1e9))
    return (weights @ v).swapaxes(1, 2).reshape(x.shape) @ layer["out"]


def loss(p, letters):
    x = p["letters"][letters] + p["places"]
    for layer in p["layers"]:
        x = x + attention(x, layer)
        x = x + jax.nn.gelu(normalized(x) @ layer["up"]) @ layer["down"]
    logits = normalized(x) @ p["letters"].T
    wanted = jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), letters[:, 1:, None], axis=-1)
    return -wanted.mean()


def train(p, letters):
    """Ten steps of gradient descent; the losses."""

    def descend(p, _):
        value, slopes = jax.value_and_grad(loss)(p, letters)
        return jax.tree.map(lambda x, slope: x - 0.3 * slope, p, slopes), value

    return jax.lax.scan(descend, p, length=10)[1]


with jax.default_device(cpu):
    start = parameters(jax.random.key(3))
both("a transformer of 2 layers, width 64: losses of 10 steps of training", train, start, text, tolerance=1e-4)
steps.end()
