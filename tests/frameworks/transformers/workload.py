# SPDX-License-Identifier: Apache-2.0
"""Models of Hugging Face's transformers and diffusers, small and with random weights, on the PyTorch of Debian 13."""

import os

import cudnn
import steps

os.environ["HF_HUB_OFFLINE"] = "1"
cudnn.load()

import diffusers
import torch
import transformers as hf

steps.framework("transformers, diffusers and PyTorch", f"{hf.__version__}, {diffusers.__version__} and {torch.__version__}")
torch.manual_seed(1)
words = torch.randint(4, 500, (2, 16))
pictures = torch.randn(2, 3, 32, 32)
sound = torch.randn(1, 20, 100)
SIZES = {"vocab_size": 500, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4}


def step(name, make, compute, tolerance=1e-4):
    """compute gets a model, whose weights are the same on both sides, and the device, and returns a tensor."""

    def on(device):
        torch.manual_seed(2)
        model = make().eval().to(device)
        with torch.no_grad():
            return compute(model, device).cpu().numpy()

    steps.step(name, lambda: on("cuda"), lambda: on("cpu"), tolerance)


def written(model, device):
    """The likeliest 16 words after those given."""
    return model.generate(words.to(device), max_new_tokens=16, do_sample=False, pad_token_id=0)


def whisper():
    sizes = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
    lengths = {"vocab_size": 500, "num_mel_bins": 20, "max_source_positions": 50, "max_target_positions": 40}
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3, "suppress_tokens": None, "begin_suppress_tokens": None}
    return hf.WhisperForConditionalGeneration(hf.WhisperConfig(**sizes, **lengths, **tokens))


def unet():
    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    return diffusers.UNet2DModel(sample_size=16, layers_per_block=1, block_out_channels=(32, 64), norm_num_groups=8, **blocks)


def without_noise(model, device):
    """A picture after four steps that take noise away."""
    scheduler = diffusers.DDIMScheduler()
    scheduler.set_timesteps(4)
    picture = pictures[:1, :, :16, :16].to(device)
    for time in scheduler.timesteps:
        picture = scheduler.step(model(picture, time).sample, time, picture).prev_sample
    return picture


step("GPT-2 writes 16 words", lambda: hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=500, n_embd=64, n_layer=3, n_head=4, initializer_range=0.2)), written, tolerance=0)
step("Llama writes 16 words, with cached keys and values", lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES, num_key_value_heads=2, initializer_range=0.2)), written, tolerance=0)
step("T5: scores of translated words", lambda: hf.T5ForConditionalGeneration(hf.T5Config(vocab_size=500, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)), lambda model, device: model(words.to(device), decoder_input_ids=words.to(device)).logits)
step("BERT: scores of masked words", lambda: hf.BertForMaskedLM(hf.BertConfig(**SIZES)), lambda model, device: model(words.to(device)).logits)
step("ViT: classes of pictures", lambda: hf.ViTForImageClassification(hf.ViTConfig(**{**SIZES, "image_size": 32, "patch_size": 4, "num_labels": 10})), lambda model, device: model(pictures.to(device)).logits)
step("Whisper: scores of words for sound", whisper, lambda model, device: model(sound.to(device), decoder_input_ids=words[:1].to(device)).logits)
step("diffusers: a picture by a U-Net, four steps of DDIM", unet, without_noise, tolerance=1e-3)
steps.end()
