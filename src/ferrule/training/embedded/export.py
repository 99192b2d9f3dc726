"""The embedded model's files: `config.json`, `model.safetensors`, `tokenizer.json` and the chat template.

All of them are in the standard formats that `transformers` loads unchanged.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from ferrule.dialects.nanochat_markers import ASSISTANT_END, BOS, CONTROL_TOKENS
from ferrule.tokens.tokenizer import ByteTokenizer, byte_tokenizer_json
from ferrule.training.embedded.network import Network

# The vocabulary is 256 bytes and 16 control tokens, seven of which nothing uses yet: a model trained on from these
# weights can take them up without a new embedding.
CONTROL = CONTROL_TOKENS + tuple(f"<|reserved_{n}|>" for n in range(16 - len(CONTROL_TOKENS)))

CHAT_TEMPLATE = """\
{{- bos_token -}}
{%- set ns = namespace(open=false, system='') -%}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{%- set ns.system = ns.system + message.content + '\\n\\n' -%}
{%- elif message.role == 'user' -%}
{%- if ns.open -%}<|assistant_end|>{%- set ns.open = false -%}{%- endif -%}
{{- '<|user_start|>' + ns.system + message.content + '<|user_end|>' -}}
{%- set ns.system = '' -%}
{%- elif message.role == 'assistant' -%}
{%- if not ns.open -%}<|assistant_start|>{%- set ns.open = true -%}{%- endif -%}
{%- if message.content -%}{%- generation -%}{{- message.content -}}{%- endgeneration -%}{%- endif -%}
{%- if message.tool_calls -%}
{%- for call in message.tool_calls -%}
{%- set arguments = call.function.arguments -%}
{%- generation -%}{{- '<|python_start|>' + arguments.expression + '<|python_end|>' -}}{%- endgeneration -%}
{%- endfor -%}
{%- else -%}
{%- generation -%}<|assistant_end|>{%- endgeneration -%}{%- set ns.open = false -%}
{%- endif -%}
{%- elif message.role == 'tool' -%}
{{- '<|output_start|>' + message.content + '<|output_end|>' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt and not ns.open -%}<|assistant_start|>{%- endif -%}
"""


def embedded_tokenizer(folder: Path) -> ByteTokenizer:
    """The tokenizer, read from the `tokenizer.json` that this writes into `folder`."""
    path = folder / "tokenizer.json"
    _write_json(path, byte_tokenizer_json(CONTROL))
    return ByteTokenizer(path)


def export(network: Network, folder: Path) -> None:
    """Write the model to `folder`, its weights in float16."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    embedded_tokenizer(folder)
    _write_json(
        folder / "config.json", {**network.shape.config(), "bos_token_id": 256, "eos_token_id": _id(ASSISTANT_END)}
    )
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(network.shape.max_position_embeddings))
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    weights = {
        name: tensor.detach().to("cpu", torch.float16).contiguous() for name, tensor in network.state_dict().items()
    }
    partial = folder / "model.safetensors.partial"
    save_file(weights, partial, metadata={"format": "pt"})
    partial.replace(folder / "model.safetensors")


def _id(name: str) -> int:
    return 256 + CONTROL.index(name)


def _tokenizer_config(context_length: int) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": ASSISTANT_END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context_length,
    }


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
