# SPDX-License-Identifier: Apache-2.0
"""CTranslate2: text made by a small language model, whose weights are random and so need not be downloaded."""

import steps

steps.begin()

import ctypes
import pathlib
import sysconfig
import tempfile

import numpy

# CTranslate2 searches for cuBLAS by its name only.
for name in ("libcublasLt.so.12", "libcublas.so.12"):
    ctypes.CDLL(str(pathlib.Path(sysconfig.get_path("purelib")) / "nvidia" / "cublas" / "lib" / name))

import ctranslate2
from ctranslate2.specs import common_spec, transformer_spec

LAYERS, HEADS, WIDTH, WORDS, LENGTH = 2, 4, 64, 200, 128
random = numpy.random.default_rng(1)


def weights(rows, columns):
    return (random.standard_normal((rows, columns)) * columns**-0.5).astype(numpy.float32)


def set_linear(linear, outputs, inputs):
    linear.weight = weights(outputs, inputs)
    linear.bias = weights(1, outputs)[0]


def set_norm(norm):
    norm.gamma = numpy.ones(WIDTH, numpy.float32)
    norm.beta = numpy.zeros(WIDTH, numpy.float32)


def save(folder):
    """A decoder as GPT-2's, which CTranslate2's own converters make of trained models."""
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(LAYERS, HEADS, activation=common_spec.Activation.GELU)
    decoder = spec.decoder
    decoder.embeddings.weight = 10 * weights(WORDS, WIDTH)
    decoder.position_encodings.encodings = weights(LENGTH, WIDTH)
    decoder.scale_embeddings = False
    set_norm(decoder.layer_norm)
    set_linear(decoder.projection, WORDS, WIDTH)
    for layer in decoder.layer:
        set_norm(layer.self_attention.layer_norm)
        set_linear(layer.self_attention.linear[0], 3 * WIDTH, WIDTH)
        set_linear(layer.self_attention.linear[1], WIDTH, WIDTH)
        set_norm(layer.ffn.layer_norm)
        set_linear(layer.ffn.linear_0, 4 * WIDTH, WIDTH)
        set_linear(layer.ffn.linear_1, WIDTH, 4 * WIDTH)
    spec.register_vocabulary([f"w{i}" for i in range(WORDS)])
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "w0", "w1", "w2"
    spec.validate()
    spec.save(folder)


prompts = [[f"w{i}" for i in random.integers(3, WORDS, length)] for length in (4, 12, 30)]


def text(generator):
    """The numbers of the words with which the model goes on, and their scores."""
    results = generator.generate_batch(prompts, max_length=40, beam_size=2, return_scores=True, include_prompt_in_result=False)
    return [[number for result in results for number in result.sequences_ids[0]], [result.scores[0] for result in results]]


def likelihoods(generator):
    return [line for score in generator.score_batch(prompts) for line in score.log_probs]


with tempfile.TemporaryDirectory() as folder:
    save(folder)
    steps.framework("CTranslate2", ctranslate2.__version__)

    def both(name, compute, kind, tolerance):
        on = {}

        def run(device):
            if device not in on:
                on[device] = ctranslate2.Generator(folder, device=device, compute_type=kind)
            return compute(on[device])

        steps.step(name, lambda: run("cuda"), lambda: run("cpu"), tolerance)

    both("log probabilities of words, f32 (cuBLAS)", likelihoods, "float32", 1e-4)
    both("40 words after each of 3 prompts, beams of 2, f32", text, "float32", 1e-4)
    both("log probabilities of words, weights of 8 bits", likelihoods, "int8", 1e-2)
    steps.end()
