"""Calls read by their ids, where a tokenizer has a dialect's single control tokens and no others."""

import json
import re

import pytest
from grammar_texts import write_shortest

from ferrule.dialects import get_dialect, list_dialects
from ferrule.dialects.segments import Control
from ferrule.dialects.value_grammar.schema_values import lower_values
from ferrule.events import CallFinished, CallMalformed, ReasoningDelta, TextDelta
from ferrule.tokens.render import encode_segments, find_spelled_markers
from ferrule.tokens.tokenizer import ByteTokenizer, make_byte_tokenizer_json
from ferrule.toolspec import ToolSpec

SAVE = ToolSpec("save", "", {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]})
CALCULATOR = ToolSpec(
    "calculator", "", {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
)
SINGLE = re.compile(r"<\|[^<>|\s]+\|>|</?[\w-]+>|<｜[^<>｜]+｜>|｜DSML｜|\]<\]minimax\[>\[|\[/?[A-Z_]+\]")
GPT_OSS = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
MUSE = " to=self<|message|>hm<|eom|><|start|>assistant"
NATURAL = {"gpt_oss": GPT_OSS, "harmony": GPT_OSS, "muse_glimmer": MUSE}


def make_tokenizer(dialect, folder):
    """Bytes, and the single control tokens that the dialect's markers consist of."""
    names = dict.fromkeys(name for marker in dialect.markers for name in SINGLE.findall(marker))
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(make_byte_tokenizer_json(tuple(names)), ensure_ascii=False), encoding="utf-8")
    return ByteTokenizer(path)


def write_call(dialect, spec):
    grammar = dialect.grammar((spec,), spec.name)
    assert grammar is not None
    return write_shortest(lower_values(grammar)[0])


def read_ids(dialect, tokenizer, ids, spec):
    """The events of a message of these ids."""
    reader = dialect.reader([spec], spelled_out=find_spelled_markers(dialect, tokenizer))
    names = {token: name for name, token in tokenizer.control.items()}
    events = []
    text = b""
    for token in (*ids, None):
        if token in names or token is None:
            events += reader.feed(text.decode(), False)
            text = b""
        if token in names:
            events += reader.feed(names[token], True)
        elif token is not None:
            text += tokenizer.decode_token(token)
    return events + reader.close(stopped=True)


@pytest.mark.parametrize("name", list_dialects())
def test_a_written_call_is_read_as_one(tmp_path, name):
    dialect, spec = get_dialect(name), CALCULATOR if name == "nanochat" else SAVE
    tokenizer, call = make_tokenizer(dialect, tmp_path), write_call(dialect, spec)
    for text in (call, *([NATURAL[name] + call] if name in NATURAL else [])):
        events = read_ids(dialect, tokenizer, encode_segments([Control(text)], tokenizer).ids, spec)
        calls = [one for one in events if isinstance(one, CallFinished | CallMalformed)]
        assert [type(one) for one in calls] == [CallFinished], (text, events)
        said = "".join(one.text for one in events if isinstance(one, TextDelta))
        thought = "".join(one.text for one in events if isinstance(one, ReasoningDelta))
        assert (said.strip(), thought) == ("", "hm" * (text != call)), (text, events)


@pytest.mark.parametrize("name", NATURAL)
def test_what_only_looks_like_control_tokens_is_text(tmp_path, name):
    dialect = get_dialect(name)
    tokenizer = make_tokenizer(dialect, tmp_path)
    text = NATURAL[name] + write_call(dialect, SAVE)
    events = read_ids(dialect, tokenizer, tokenizer.encode_text(text), SAVE)
    assert not any(isinstance(one, CallFinished | ReasoningDelta) for one in events)
