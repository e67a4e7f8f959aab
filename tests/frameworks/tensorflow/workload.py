# SPDX-License-Identifier: Apache-2.0
"""TensorFlow: operations, and small networks that Keras trains: layers of convolutions (cuDNN), and an LSTM."""

import pathlib

import steps

steps.begin(
    # Some kernels are compiled at run time, by bin/ptxas in this folder.
    XLA_FLAGS=f"--xla_gpu_cuda_data_dir={steps.PTXAS_FOLDER} --xla_gpu_enable_libnvptxcompiler=false --xla_gpu_enable_libnvjitlink=false --xla_gpu_autotune_level=0",
    # Otherwise all of the device's memory, which is the machine's on CPU devices.
    TF_FORCE_GPU_ALLOW_GROWTH="true",
    # Otherwise every algorithm of cuDNN is tried, each of which lavapipe's compiler needs long for.
    TF_CUDNN_USE_AUTOTUNE="0",
    # TF32 on devices that claim to have it would round what the CPU does not.
    NVIDIA_TF32_OVERRIDE="0",
)

import ctypes
import sys
import sysconfig

import numpy

# TensorFlow 2.21 does not look where its own requirements put cuSOLVER, and then leaves all devices out.
for name in ("nvjitlink/lib/libnvJitLink.so.12", "cublas/lib/libcublasLt.so.12", "cublas/lib/libcublas.so.12", "cusparse/lib/libcusparse.so.12", "cusolver/lib/libcusolver.so.11"):
    ctypes.CDLL(str(pathlib.Path(sysconfig.get_path("purelib")) / "nvidia" / name))

# Where it can, TensorFlow makes its symbols global, among them those of its LLVM, and lavapipe's driver would call that one instead of its own
# and crash. TensorFlow works without if this module cannot be imported.
sys.modules["tensorflow.python.pywrap_dlopen_global_flags"] = None

import tensorflow as tf

if not tf.config.list_physical_devices("GPU"):
    raise SystemExit("TensorFlow finds no device")
tf.config.set_soft_device_placement(False)
steps.framework("TensorFlow", tf.__version__)

random = numpy.random.default_rng(1)
floats = random.standard_normal((512, 512), dtype=numpy.float32)
words = random.integers(0, 1000, 100_000, dtype=numpy.int32)


def both(name, compute, *arrays, tolerance):
    def on(device):
        with tf.device(device):
            result = compute(*[tf.constant(array) for array in arrays])
        return tf.nest.map_structure(lambda x: x.numpy() if hasattr(x, "numpy") else x, result)

    steps.step(name, lambda: on("/GPU:0"), lambda: on("/CPU:0"), tolerance)


both("sines, roots, sums along an axis, 512 x 512", lambda a: tf.reduce_sum(tf.sin(a) + tf.sqrt(tf.abs(a)), axis=0), floats, tolerance=1e-5)
both("matrix product, 512 x 512 (cuBLAS)", lambda a: a @ a, floats, tolerance=1e-5)
both("softmax of 512 rows", lambda a: tf.nn.softmax(a), floats, tolerance=1e-5)
both("largest 10 of each row", lambda a: tf.math.top_k(a, 10).values, floats, tolerance=0)
both("gathered and summed by key, 100,000 words", lambda w: tf.math.unsorted_segment_sum(tf.gather(tf.range(1000), w), w % 64, 64), words, tolerance=0)
both("FFT of 512 x 512 (cuFFT)", lambda a: tf.signal.fft2d(tf.cast(a, tf.complex64)), floats, tolerance=1e-5)



@tf.function(jit_compile=True)
def compiled(a):
    return tf.nn.softmax(tf.sin(a) * tf.exp(-a * a), axis=0)


both("a function that XLA compiles (jit_compile=True), 512 x 512", compiled, floats, tolerance=1e-5)

pictures = random.standard_normal((64, 16, 16, 1), dtype=numpy.float32)
labels = (pictures.mean(axis=(1, 2, 3)) * 40).astype(int) % 4
series = numpy.cumsum(random.standard_normal((64, 20, 4), dtype=numpy.float32), axis=1)
targets = series.mean(axis=(1, 2))


def convolutions(device):
    layers = [
        tf.keras.layers.Conv2D(8, 3, activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(4),
    ]
    return tf.keras.Sequential([tf.keras.layers.Input((16, 16, 1)), *layers]), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def lstm(device):
    """Where there is a device, Keras computes LSTMs by its cuDNN, whatever device is asked for, unless it is told not to."""
    layer = tf.keras.layers.LSTM(16, use_cudnn="auto" if device == "/GPU:0" else False)
    return tf.keras.Sequential([tf.keras.layers.Input((20, 4)), layer, tf.keras.layers.Dense(1)]), tf.keras.losses.MeanSquaredError()


def losses(device, network, given, wanted):
    """The losses of four passes over the data in the same order, and what the network then predicts."""
    tf.keras.utils.set_random_seed(1)
    # Weights of the CPU's generator, since the device's draws others.
    with tf.device("/CPU:0"):
        weights = network(device)[0].get_weights()
    with tf.device(device):
        model, loss = network(device)
        model.set_weights(weights)
        model.compile(optimizer=tf.keras.optimizers.SGD(0.02), loss=loss, jit_compile=False)
        history = model.fit(given, wanted, batch_size=32, epochs=4, shuffle=False, verbose=0)
        assert all(device[1:] in weight.value.device for weight in model.trainable_weights), "computed elsewhere"
        return [history.history["loss"], model.predict(given, verbose=0)]


tf.config.set_soft_device_placement(True)  # Keras counts its steps on the CPU
for name, network, given, wanted in (
    ("training of a small CNN, 4 passes over 64 pictures (cuDNN)", convolutions, pictures, labels),
    ("training of an LSTM of 16 units, 4 passes over 64 series (cuDNN)", lstm, series, targets),
):
    steps.step(name, lambda: losses("/GPU:0", network, given, wanted), lambda: losses("/CPU:0", network, given, wanted), 1e-3)
steps.end()
