"""Tokenizers and conversations that the tests of tokens share."""

import json

import pytest
from hypothesis import strategies as st

from ferrule.conversation import (
    Conversation,
    MalformedCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.dialects import get_dialect
from ferrule.dialects.families.nanochat import CONTROL_TOKENS
from ferrule.tokens.tokenizer import ByteTokenizer, make_byte_tokenizer_json

HERMES = get_dialect("hermes")
NANOCHAT = get_dialect("nanochat")
ALL_MARKERS = (*HERMES.markers, *NANOCHAT.markers)


def byte_tokenizer(folder, control=CONTROL_TOKENS):
    """A byte tokenizer whose file lies in `folder`."""
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(make_byte_tokenizer_json(control), ensure_ascii=False), encoding="utf-8")
    return ByteTokenizer(path)


def train_bpe(path, texts):
    """Write an 8k byte-level BPE; `<tool_call>` and its like are added as not special, as Qwen 3 has them."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed: pip install 'ferrule[local]'")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=8192, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    for marker in ALL_MARKERS:
        is_special = marker.startswith("<|")
        tokenizer.add_tokens([tokenizers.AddedToken(marker, special=is_special, normalized=False)])
    tokenizer.save(str(path))


# Any text, and texts that look like framing.
EVIL = st.lists(st.one_of(st.text(max_size=10), st.sampled_from(ALL_MARKERS), st.just("\n")), max_size=5).map("".join)


@st.composite
def conversations(draw, dialect, texts=EVIL, with_malformed=True):
    """Conversations that a dialect can write, each call answered, of any content."""
    is_nanochat = dialect.name == "nanochat"
    messages = [system(draw(texts))] if draw(st.booleans()) else []
    number = 0
    for _ in range(draw(st.integers(0, 3))):
        messages.append(user(draw(texts)))
        for _ in range(draw(st.integers(0, 2))):
            made = []
            for _ in range(1 if is_nanochat else draw(st.integers(1, 2))):
                number += 1
                key = "expression" if is_nanochat else draw(texts)
                arguments = json.dumps({key: draw(texts)}, ensure_ascii=False)
                made.append(ToolCall(f"call_{number}", "calculator", arguments))
                if with_malformed and draw(st.integers(0, 9)) == 0:
                    made[-1] = MalformedCall(f"call_{number}", draw(texts), "truncated")
            before = [Text(text)] if (text := draw(texts)) else []
            if not is_nanochat and draw(st.booleans()):
                before.insert(0, Reasoning(draw(texts)))
            messages.append(assistant(*before, *made))
            messages += [tool_message(ToolResult(call.id, "calculator", (Text(draw(texts)),))) for call in made]
        messages.append(assistant(draw(texts)))
    return Conversation(tuple(messages))
