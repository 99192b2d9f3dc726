"""A NanoChat model of a few thousand weights, trained by transformers on a few conversations until it knows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
import transformers

from ferrule.conversation import Conversation, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.dialects import get_dialect
from ferrule.dialects.families.nanochat import CONTROL_TOKENS
from ferrule.tokens.render import render
from ferrule.tokens.tokenizer import ByteTokenizer, make_byte_tokenizer_json


def make_sum(expression: str, output: str) -> Conversation:
    """A conversation that asks for an expression, calls the calculator for it, and says its output."""
    call = ToolCall("call_1", "calculator", json.dumps({"expression": expression}))
    return Conversation(
        (
            user(f"What is {expression}?"),
            assistant(call),
            tool_message(ToolResult("call_1", "calculator", (Text(output),))),
            assistant(f"It is {output}."),
        )
    )


def write_nanochat_checkpoint(folder: Path, conversations: Sequence[Conversation]) -> Path:
    """Train on these conversations, as their dialect writes them, and save it as transformers does."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(make_byte_tokenizer_json(CONTROL_TOKENS)))
    tokenizer, dialect = ByteTokenizer(folder / "tokenizer.json"), get_dialect("nanochat")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = transformers.NanoChatForCausalLM(
            transformers.NanoChatConfig(
                vocab_size=tokenizer.vocabulary_size,
                hidden_size=64,
                intermediate_size=128,
                num_hidden_layers=2,
                num_attention_heads=2,
                num_key_value_heads=2,
                max_position_embeddings=512,
                bos_token_id=None,
                eos_token_id=None,
                pad_token_id=None,
            )
        )
    traces = [render(conversation, dialect, tokenizer) for conversation in conversations]
    width = max(map(len, traces))
    ids = torch.zeros(len(traces), width, dtype=torch.long)
    labels = torch.full((len(traces), width), -100)
    for row, trace in enumerate(traces):
        ids[row, : len(trace)] = torch.tensor(trace.ids)
        labels[row, : len(trace)] = torch.tensor(
            [token if mask else -100 for token, mask in zip(trace.ids, trace.mask, strict=True)]
        )
    optimizer = torch.optim.AdamW(network.parameters(), lr=6e-3, weight_decay=0.0)
    for _ in range(300):
        loss = network(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if loss.item() < 0.006:
            break
    assert loss.item() < 0.01, f"the test's model was not learnt: {loss.item()}"
    network.save_pretrained(folder)
    return folder
