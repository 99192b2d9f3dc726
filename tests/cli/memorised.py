"""Tiny real models for the command line's tests, trained for a few seconds until they say what they should.

So a command is tested with everything that it really runs: an engine, a tokenizer, a dialect, the executor.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from ferrule.conversation import Conversation
from ferrule.dialects import get_dialect
from ferrule.dialects.families.nanochat import CONTROL_TOKENS
from ferrule.tokens.render import render
from ferrule.tokens.tokenizer import ByteTokenizer, make_byte_tokenizer_json
from ferrule.toolspec import ToolSpec
from ferrule.training.embedded.checkpoint import export
from ferrule.training.embedded.network import Network, Shape

HERMES_TOKENS = (
    "<|im_start|>",
    "<|im_end|>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)


def write_tokenizer(path: Path, control: Sequence[str] = CONTROL_TOKENS) -> ByteTokenizer:
    """A byte tokenizer with these control tokens, written to `path`."""
    padded = [*control, *(f"<|reserved_{n}|>" for n in range(16 - len(control)))]
    path.write_text(json.dumps(make_byte_tokenizer_json(padded)))
    return ByteTokenizer(path)


def memorise(
    folder: Path,
    conversations: Sequence[Conversation],
    dialect_name: str = "nanochat",
    tools: Sequence[ToolSpec] = (),
    *,
    steps: int = 250,
    context: int = 2048,
    has_end: bool = True,
) -> Path:
    """Train a model of a few thousand weights on these conversations alone, and write it to `folder`.

    Without an end (`has_end`), the weights of its control tokens are zero: some byte is always likelier.
    """
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    dialect = get_dialect(dialect_name)
    control = CONTROL_TOKENS if dialect_name == "nanochat" else HERMES_TOKENS
    tokenizer = write_tokenizer(folder / "tokenizer.json", control)
    shape = Shape(
        vocab_size=tokenizer.vocabulary_size,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=128,
        max_position_embeddings=context,
    )
    network = Network(shape)
    traces = [render(conversation, dialect, tokenizer, tools) for conversation in conversations]
    width = max(map(len, traces))
    ids = torch.zeros(len(traces), width, dtype=torch.long)
    targets = torch.full((len(traces), width), -100)
    for row, trace in enumerate(traces):
        ids[row, : len(trace)] = torch.tensor(trace.ids)
        trained = torch.tensor([token if mask else -100 for token, mask in zip(trace.ids, trace.mask, strict=True)])
        targets[row, : len(trace) - 1] = trained[1:]
    optimizer = torch.optim.AdamW(network.parameters(), lr=6e-3, weight_decay=0.0)
    for _ in range(steps):
        loss = network.compute_loss(ids, targets)
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if loss.item() < 0.006:
            break
    assert steps == 0 or loss.item() < 0.01, f"the test's model was not learnt: {loss.item()}"
    if not has_end:
        with torch.no_grad():
            network.model.embed_tokens.weight[list(tokenizer.control.values())] = 0
    export(network, folder)
    # What it exports besides tells of the embedded model's own framing.
    for name in ("chat_template.jinja", "tokenizer_config.json"):
        (folder / name).unlink(missing_ok=True)
    write_tokenizer(folder / "tokenizer.json", control)
    return folder
