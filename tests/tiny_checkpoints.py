"""Tiny random checkpoints of the families that transformers runs: a few layers, float32, the same for the same seed.

Sliding windows are shorter than the sequences of any test, and the weights so large that each id of a context counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

VOCABULARY = 320
"""The ids of a model: 256 bytes, merges and control tokens of its tokenizer, and some that no token has."""
WINDOW = 16
LAYERS = 4
SPREAD = 0.25
"""Standard deviation of the weights: at transformers' 0.02 every id would be about as likely as any other."""
CONTROL = {
    "qwen3": ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "</tool_call>", "<think>", "</think>"),
    "llama": (
        "<s>",
        "</s>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|python_tag|>",
    ),
    "nanochat": (
        "<|bos|>",
        "<|user_start|>",
        "<|user_end|>",
        "<|assistant_start|>",
        "<|assistant_end|>",
        "<|python_start|>",
        "<|python_end|>",
        "<|output_start|>",
        "<|output_end|>",
    ),
}
"""The control tokens of three families, for `write_tiny_checkpoint`."""

_SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 1024,
    "initializer_range": SPREAD,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
_HEADS = {"head_dim": 12}
_MIXED = ["sliding_attention", "full_attention"] * (LAYERS // 2)
_IMAGE_IDS = {"image_token_id": 300, "video_token_id": 301, "vision_start_token_id": 302, "vision_end_token_id": 303}
_SECTIONS = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 2, 2]}


def _plain(name: str, **settings: Any) -> Callable[[Any, dict[str, Any]], Any]:
    def make(transformers: Any, changes: dict[str, Any]) -> Any:
        config = getattr(transformers, f"{name}Config")
        return config(**(_SHAPE | settings | changes))

    return make


def _with_images(name: str, vision: dict[str, Any], **settings: Any) -> Callable[[Any, dict[str, Any]], Any]:
    """The config of a model with a vision tower, of which the tests use its text."""

    def make(transformers: Any, changes: dict[str, Any]) -> Any:
        config = getattr(transformers, f"{name}Config")
        return config(text_config=_SHAPE | settings | changes, vision_config=vision, **_IMAGE_IDS)

    return make


def _ovis(transformers: Any, changes: dict[str, Any]) -> Any:
    vision = {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "vocab_size": 16,
        "num_visual_indicator_tokens": 5,
        "hidden_stride": 2,
    }
    return transformers.Ovis2Config(
        vision_config=vision,
        text_config={"model_type": "qwen2", **_SHAPE, **changes},
        image_token_id=300,
        visual_indicator_token_ids=[301, 302, 303, 304, 305],
        vocab_size=VOCABULARY,
        hidden_size=_SHAPE["hidden_size"],
    )


def _gemma3(transformers: Any, changes: dict[str, Any]) -> Any:
    text = {**_SHAPE, **_HEADS, "query_pre_attn_scalar": 12, "sliding_window": WINDOW, "layer_types": _MIXED}
    vision = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    return transformers.Gemma3Config(
        text_config=text | changes,
        vision_config=vision | {"image_size": 28, "patch_size": 14},
        mm_tokens_per_image=4,
        image_token_index=310,
        initializer_range=SPREAD,
        tie_word_embeddings=False,
    )


_VISION = {"depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 48}
_CONFIGS: dict[str, tuple[str, Callable[[Any, dict[str, Any]], Any]]] = {
    "qwen3": ("Qwen3ForCausalLM", _plain("Qwen3", **_HEADS)),
    "qwen3-sliding": (
        "Qwen3ForCausalLM",
        _plain("Qwen3", **_HEADS, use_sliding_window=True, sliding_window=WINDOW, layer_types=_MIXED),
    ),
    "llama": ("LlamaForCausalLM", _plain("Llama", **_HEADS)),
    "nanochat": ("NanoChatForCausalLM", _plain("NanoChat")),
    "gemma3": (
        "Gemma3ForCausalLM",
        _plain(
            "Gemma3Text",
            **_HEADS,
            query_pre_attn_scalar=12,
            sliding_window=WINDOW,
            layer_types=_MIXED,
            tie_word_embeddings=False,  # tied, and so widely spread, they repeat the last id
        ),
    ),
    "gpt-oss": (
        "GptOssForCausalLM",
        _plain(
            "GptOss",
            **_HEADS,
            sliding_window=WINDOW,
            layer_types=_MIXED,
            initializer_range=0.15,  # as with `qwen3-next`
            num_local_experts=4,
            num_experts_per_tok=2,
        ),
    ),
    "lfm2": (
        "Lfm2ForCausalLM",
        _plain("Lfm2", layer_types=["conv", "full_attention"] * (LAYERS // 2), block_multiple_of=16),
    ),
    "qwen3-next": (
        "Qwen3NextForCausalLM",
        _plain(
            "Qwen3Next",
            **_HEADS,
            initializer_range=0.08,  # at `SPREAD` its own forward pass is off by 2e-4 from that in float64
            layer_types=["linear_attention"] * (LAYERS - 1) + ["full_attention"],
            linear_key_head_dim=12,
            linear_value_head_dim=12,
            linear_num_key_heads=2,
            linear_num_value_heads=4,
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=32,
            shared_expert_intermediate_size=32,
            rope_parameters={"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.5},
        ),
    ),
    "qwen2.5-vl": (
        "Qwen2_5_VLForConditionalGeneration",
        _with_images("Qwen2_5_VL", _VISION, rope_parameters=_SECTIONS),
    ),
    "qwen3-vl": (
        "Qwen3VLForConditionalGeneration",
        _with_images("Qwen3VL", _VISION | {"deepstack_visual_indexes": [0]}, **_HEADS, rope_parameters=_SECTIONS),
    ),
    "ovis2": ("Ovis2ForConditionalGeneration", _ovis),
    "gemma3-vl": ("Gemma3ForConditionalGeneration", _gemma3),
    "mamba": (
        "MambaForCausalLM",
        _plain("Mamba", state_size=8, time_step_rank=4, intermediate_size=96, expand=2),
    ),
    "bamba": (
        "BambaForCausalLM",
        _plain("Bamba", mamba_n_heads=8, mamba_d_head=12, mamba_d_state=8, attn_layer_indices=[1]),
    ),
}
FAMILIES = tuple(name for name in _CONFIGS if name not in ("mamba", "bamba"))
"""Those that an engine runs."""
REFUSED = ("mamba", "bamba")
"""Those whose state can't be put back to an earlier position, nor several rows advanced by different lengths."""
WITH_WINDOWS = ("qwen3-sliding", "gemma3", "gpt-oss")


def make_tiny_model(family: str, seed: int = 0, **changes: Any) -> Any:
    """A random model for evaluation, float32 on the CPU; `changes` are of its text's config."""
    import torch
    import transformers

    name, make = _CONFIGS[family]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = getattr(transformers, name)(make(transformers, changes)).to(torch.float32).eval()
        for parameter in model.parameters():
            if parameter.dim() == 1:  # norms, which all begin as ones or zeros, and sinks
                parameter.data += 0.3 * torch.randn_like(parameter)
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model.requires_grad_(False)


@cache
def shared_tiny_model(family: str) -> Any:
    """The model of seed 0, made once a process: for whoever doesn't change it."""
    return make_tiny_model(family)


def write_tiny_checkpoint(
    folder: Path, family: str, template: str | None = None, control: Iterable[str] = (), seed: int = 0, **changes: Any
) -> Path:
    """A folder with config, safetensors, `tokenizer.json` and, if given, a chat template; returns it.

    `control` are the tokens that the tokenizer adds as special ones; those of `CONTROL` if left out.
    """
    make_tiny_model(family, seed, **changes).save_pretrained(folder)
    write_tiny_tokenizer(folder / "tokenizer.json", tuple(control) or CONTROL.get(family, CONTROL["qwen3"]))
    if template is not None:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return folder


def write_tiny_tokenizer(path: Path, control: Iterable[str]) -> Path:
    """A byte-level BPE with a few merges, as `tokenizers` trains it on this very file; all its ids have a logit.

    What begins with `<|`, or is a family's end of a sequence, is special; the rest, as `<tool_call>`, isn't, as with
    Qwen 3.
    """
    import tokenizers

    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=290, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    made.train_from_iterator([Path(__file__).read_text(encoding="utf-8")], trainer)
    for token in control:
        is_special = token.startswith("<|") or token in ("<s>", "</s>")
        made.add_tokens([tokenizers.AddedToken(token, special=is_special, normalized=False)])
    assert made.get_vocab_size() <= VOCABULARY
    made.save(str(path))
    return path
