# SPDX-License-Identifier: Apache-2.0
"""llama.cpp with its CUDA backend: text made by a small language model of Llama's kind, whose weights are random and so need not be downloaded."""

import steps

# The backend decides by the reported capability, and expects to have been built for it or for an older one.
steps.begin(CUTTLE_COMPUTE_CAPABILITY="8.0")

import pathlib
import tempfile

import gguf
import llama_cpp
import numpy

LAYERS, HEADS, KEY_HEADS, WIDTH, INNER, LENGTH = 2, 4, 2, 256, 512, 256
WORDS = [("<unk>", 0.0, gguf.TokenType.UNKNOWN), ("<s>", 0.0, gguf.TokenType.CONTROL), ("</s>", 0.0, gguf.TokenType.CONTROL)]
WORDS += [(f"<0x{byte:02X}>", 0.0, gguf.TokenType.BYTE) for byte in range(256)]
WORDS += [(f"\u2581w{i}", -float(i), gguf.TokenType.NORMAL) for i in range(253)]


def save(path, kind):
    """A model with weights of one kind, as llama.cpp's own converters write it for trained ones."""
    random = numpy.random.default_rng(1)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(LENGTH)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _, _ in WORDS])
    writer.add_token_scores([score for _, score, _ in WORDS])
    writer.add_token_types([kind for _, _, kind in WORDS])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def add_weights(name, rows, columns, scale=1.0):
        weights = (scale * random.standard_normal((rows, columns)) * columns**-0.5).astype(numpy.float32)
        writer.add_tensor(f"{name}.weight", gguf.quants.quantize(weights, kind), raw_dtype=kind)

    def add_norm(name):
        writer.add_tensor(f"{name}.weight", numpy.ones(WIDTH, numpy.float32))

    add_weights("token_embd", len(WORDS), WIDTH, 10)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        add_norm(f"{block}.attn_norm")
        add_weights(f"{block}.attn_q", WIDTH, WIDTH)
        add_weights(f"{block}.attn_k", KEY_HEADS * WIDTH // HEADS, WIDTH)
        add_weights(f"{block}.attn_v", KEY_HEADS * WIDTH // HEADS, WIDTH)
        add_weights(f"{block}.attn_output", WIDTH, WIDTH)
        add_norm(f"{block}.ffn_norm")
        add_weights(f"{block}.ffn_gate", INNER, WIDTH)
        add_weights(f"{block}.ffn_up", INNER, WIDTH)
        add_weights(f"{block}.ffn_down", WIDTH, INNER)
    add_norm("output_norm")
    add_weights("output", len(WORDS), WIDTH, 10)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


prompt = [1] + [int(word) for word in numpy.random.default_rng(2).integers(259, len(WORDS), 40)]


def text(model):
    """The words with which the model goes on, each the likeliest."""
    model.reset()
    words = []
    for word in model.generate(prompt, temp=0.0):
        words.append(word)
        if len(words) == 40:
            return words


def logits(model):
    """What the model says of each word of the prompt."""
    model.reset()
    model.eval(prompt)
    return model.scores[: len(prompt)].copy()


with tempfile.TemporaryDirectory() as folder:
    steps.framework("llama-cpp-python", llama_cpp.__version__)
    models = {}

    def load(kind, device):
        """Loads a model once for each side. By default the CPU's side would hand large products to the device, too."""
        key = kind, device
        if key not in models:
            path = pathlib.Path(folder) / f"{kind.name}.gguf"
            if not path.exists():
                save(path, kind)
            on_device = {"n_gpu_layers": -1} if device else {"n_gpu_layers": 0, "offload_kqv": False, "op_offload": False}
            models[key] = llama_cpp.Llama(str(path), n_ctx=LENGTH, logits_all=True, n_threads=2, **on_device)
        return models[key]

    def both(name, compute, kind, tolerance):
        steps.step(name, lambda: compute(load(kind, True)), lambda: compute(load(kind, False)), tolerance)

    kinds = gguf.GGMLQuantizationType
    both("logits of a prompt, f32 (cuBLAS)", logits, kinds.F32, 1e-2)
    both("40 words after it, f32", text, kinds.F32, 0)
    both("40 words after it, f16", text, kinds.F16, 0)
    both("40 words after it, weights of 8 bits (Q8_0)", text, kinds.Q8_0, 0)
    both("logits of a prompt, weights of 8 bits (Q8_0)", logits, kinds.Q8_0, 3e-2)
    both("logits of a prompt, weights of 4 bits (Q4_0)", logits, kinds.Q4_0, 3e-2)
    steps.end()
