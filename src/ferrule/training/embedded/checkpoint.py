"""Writes a trained model to a folder.

The files are `config.json`, `model.safetensors`, `tokenizer.json` and the chat template, all in the standard formats
that `transformers` loads unchanged.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from ferrule.dialects.families.nanochat import ASSISTANT_END, BOS, CONTROL_TOKENS
from ferrule.dialects.families.nanochat_tools import TOOLS_END, TOOLS_START
from ferrule.tokens.word_tokenizer import WordTokenizer, make_word_tokenizer_json
from ferrule.training.embedded.network import Network

TOKENIZER = "tokenizer.json"
_CHAT_TEMPLATE = "chat_template.jinja"
_MERGES = "merges.txt"
_USED = (*CONTROL_TOKENS, TOOLS_START, TOOLS_END)
# Sixteen, five of which are unused: a model trained further from these weights can use them without a new embedding.
CONTROL = (*_USED, *(f"<|reserved_{n}|>" for n in range(16 - len(_USED))))


def write_embedded_tokenizer(folder: Path) -> WordTokenizer:
    """Write a `tokenizer.json` into `folder`; returns the tokenizer read from it."""
    path = folder / TOKENIZER
    _write_json(path, make_word_tokenizer_json(CONTROL, read_merges()))
    return WordTokenizer(path)


def read_merges() -> list[tuple[str, str]]:
    """The pairs that the vocabulary merges, the most frequent of the training texts first."""
    lines = (files("ferrule.training.embedded") / _MERGES).read_text("utf-8").splitlines()
    return [(left, right) for left, right in map(str.split, lines)]


def export(network: Network, folder: Path) -> None:
    """Write the model to `folder`, with its weights in float16."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    write_embedded_tokenizer(folder)
    _write_json(
        folder / "config.json",
        {**network.shape.make_config(), "bos_token_id": 256, "eos_token_id": get_control_id(ASSISTANT_END)},
    )
    _write_json(folder / "tokenizer_config.json", _make_tokenizer_config(network.shape.max_position_embeddings))
    (folder / _CHAT_TEMPLATE).write_text(read_chat_template(), encoding="utf-8")
    weights = {
        name: tensor.detach().to("cpu", torch.float16).contiguous() for name, tensor in network.state_dict().items()
    }
    partial = folder / "model.safetensors.partial"
    save_file(weights, partial, metadata={"format": "pt"})
    partial.replace(folder / "model.safetensors")


def read_chat_template() -> str:
    """The chat template of an exported model, in Jinja."""
    return (files("ferrule.training.embedded") / _CHAT_TEMPLATE).read_text("utf-8")


def get_control_id(name: str) -> int:
    """The id of a control token."""
    return 256 + CONTROL.index(name)


def _make_tokenizer_config(context_length: int) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": ASSISTANT_END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context_length,
    }


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
