"""The standard way to the same ids: chat templates through transformers, the assistant's mask included."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from token_parts import ALL_MARKERS, HERMES, NANOCHAT, conversations

from ferrule.conversation import Reasoning
from ferrule.tokens.render import render
from ferrule.toolspec import ToolSpec

WHY = "is not installed: pip install 'ferrule[local]'"
TOOLS = [ToolSpec("calculator", "Evaluates, exactly: ¼ too.", {"type": "object", "properties": {}})]
# Text that holds markers is left out, since templates make control tokens of it; so is white space at the ends, which
# a template joins with the newline of the header before it.
PLAIN = st.text(max_size=30).filter(lambda text: text == text.strip() and not any(m in text for m in ALL_MARKERS))
many = settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)


def transformers_tokenizer(path, template, **names):
    transformers = pytest.importorskip("transformers", reason=f"transformers {WHY}")
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), chat_template=template, **names)


def as_dictionaries(conversation):
    messages = []
    for message in conversation.messages:
        if message.role == "tool":
            messages.append({"role": "tool", "content": message.result.text})
            continue
        calls = [{"type": "function", "function": {"name": c.name, "arguments": c.decode()}} for c in message.calls]
        entry = {"role": message.role, "content": message.text}
        messages.append({**entry, "tool_calls": calls} if calls else entry)
    return messages


def expected(tokenizer, conversation, tools=None, prompt=False):
    encoded = tokenizer.apply_chat_template(
        as_dictionaries(conversation),
        tools=tools,
        return_dict=True,
        return_assistant_tokens_mask=True,
        add_generation_prompt=prompt,
    )
    return tuple(encoded["input_ids"]), tuple(encoded["assistant_masks"])


@given(conversation=conversations(NANOCHAT, PLAIN, with_malformed=False))
@many
def test_the_embedded_models_template_gives_our_ids_and_mask(nanochat_bytes, tmp_path_factory, conversation):
    pytest.importorskip("torch", reason=f"torch {WHY}")
    from ferrule.training.embedded.checkpoint import read_chat_template, write_embedded_tokenizer

    folder = tmp_path_factory.getbasetemp() / "embedded"
    folder.mkdir(exist_ok=True)
    ours = write_embedded_tokenizer(folder)
    theirs = transformers_tokenizer(
        folder / "tokenizer.json", read_chat_template(), bos_token="<|bos|>", eos_token="<|assistant_end|>"
    )
    if not conversation.messages or any(
        m.role == "assistant" and not (m.text or m.calls) for m in conversation.messages
    ):
        return
    trace = render(conversation, NANOCHAT, ours)
    ids, mask = expected(theirs, conversation)
    assert trace.ids == ids
    # Of a character that takes several tokens at the end of a `generation` block, transformers marks the first only.
    spoken = [m for m in conversation.messages if m.role == "assistant"]
    if all(m.text.isascii() and all(call.arguments.isascii() for call in m.calls) for m in spoken):
        assert trace.mask == mask
    prompt = render(conversation, NANOCHAT, ours, with_prompt=True)
    assert prompt.ids == expected(theirs, conversation, prompt=True)[0]


@pytest.fixture(scope="module")
def qwen_like(bpe_file):
    path = Path(__file__).parents[2] / "benchmarks" / "rendering.py"
    specification = importlib.util.spec_from_file_location("rendering_benchmark", path)
    benchmark = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(benchmark)
    return transformers_tokenizer(bpe_file, benchmark.TEMPLATE)


@given(conversation=conversations(HERMES, PLAIN, with_malformed=False), offers=st.booleans())
@many
def test_a_template_like_qwens_gives_our_ids_and_mask(bpe, qwen_like, conversation, offers):
    messages = tuple(
        message.with_parts(part for part in message.parts if not isinstance(part, Reasoning))
        for message in conversation.messages
    )
    conversation = replace(conversation, messages=messages)
    if not messages or any(m.role == "system" and not m.text for m in messages):
        return
    tools = TOOLS if offers else []
    functions = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in tools
    ]
    trace = render(conversation, HERMES, bpe, tools)
    assert (trace.ids, trace.mask) == expected(qwen_like, conversation, functions or None)
    prompt = render(conversation, HERMES, bpe, tools, with_prompt=True)
    assert prompt.ids == expected(qwen_like, conversation, functions or None, prompt=True)[0]
