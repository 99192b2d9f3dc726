"""Recordings of models as a stranger makes them: each is refused with one line, and none hangs."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferrule import ScriptedModel, ToolCall, calculator, model, record
from ferrule.errors import ModelError, SettingsError

CALL = ToolCall("call_a", "calculator", '{"expression": "12 * 34"}')
LINE = r"line \d+: a damaged row: "
NO_RECORDING = r"line 1: not a recording, or a damaged one: "
HEADER = '{"type": "recording", "version": 2}\n'

TEXTS: dict[str, tuple[str | bytes, str]] = {
    "no JSON": ("no json\n", NO_RECORDING + "it is not JSON"),
    "bytes": (b"\x00\xff\xfe\n\n", NO_RECORDING + "it is not JSON"),
    "a number": ("5\n", NO_RECORDING + "it doesn't begin with a row of the type 'recording'"),
    "another format": ('{"messages": []}\n', NO_RECORDING + "it doesn't begin"),
    "the first version": (
        '{"version": 1, "type": "model", "model": "m"}\n',
        "version 1, .* delete it and record",
    ),
    "a later version": ('{"version": 3, "type": "recording"}\n', "version 3, .* update ferrule"),
    "a version in words": ('{"version": "two"}\n', "version 'two'"),
    "a deep first row": ("[" * 200_000 + "\n", NO_RECORDING + "it is nested too deeply"),
    "a long number": (HEADER + "9" * 10_000 + "\n", LINE + "it is not JSON"),
    "no row": (HEADER + "5\n", LINE),
    "an unknown row": (HEADER + '{"type": "note"}\n', LINE + "input tag 'note'"),
    "an unknown capability": (
        HEADER + '{"type": "model", "model": "m", "capabilities": {"wings": 2}}\n',
        LINE + "unknown capability 'wings'",
    ),
    "a capability in words": (HEADER + '{"type": "model", "model": "m", "capabilities": {"ids": "x"}}\n', LINE + "ids"),
}


def set_first(kind: str, **fields: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Change fields of the first row of a type."""
    return lambda rows: next(row for row in rows if row["type"] == kind).update(fields)


CHANGES: dict[str, tuple[Callable[[list[dict[str, Any]]], None], str]] = {
    "names that aren't there": (set_first("exchange", messages=["ffff"]), LINE + "it names the row ffff"),
    "messages inline": (set_first("exchange", messages=[{"role": "user"}]), LINE + "exchange.messages.0"),
    "a message without parts": (set_first("shared", value={"role": "user"}), LINE + "'parts' is missing"),
    "a message of nobody": (set_first("shared", value={"role": 5, "parts": []}), LINE),
    "a part of no type": (set_first("shared", value={"role": "user", "parts": [{}]}), LINE + "'type' is missing"),
    "tools that are messages": (lambda rows: rows[4].update(tools=rows[2]["id"]), LINE),
    "settings that are tools": (lambda rows: rows[4].update(settings=rows[3]["id"]), LINE),
    "an answer of a user": (set_first("exchange", answer={"role": "user", "parts": []}), LINE + "an answer is"),
    "no answer": (set_first("exchange", answer=None), LINE),
    "unknown usage": (set_first("exchange", usage={"wings": 2}), LINE + ".*wings"),
    "usage in words": (set_first("exchange", usage={"prompt_tokens": "many"}), LINE + "exchange.usage"),
    "an unknown end": (set_first("exchange", stop="bored"), LINE + "exchange.stop"),
    "an unknown event": (set_first("exchange", events=[{"wings": 2}]), LINE + "not an event"),
    "pieces that are numbers": (set_first("exchange", events=[{"text": [1]}]), LINE + "not an event"),
    "a call that isn't there": (set_first("exchange", events=[{"finished": 7}]), LINE),
    "spans of another number": (set_first("exchange", events=[{"text": ["a"], "spans": [None, None]}]), LINE),
    "an image that isn't there": (set_first("exchange", prompt_images=[["ffff", 0, 1]]), LINE + "the image ffff"),
    "ids in words": (set_first("exchange", prompt_ids=["x"]), LINE + "exchange.prompt_ids"),
    "a withheld call of nothing": (set_first("exchange", withheld=[{}]), LINE),
    "a second header": (lambda rows: rows.append(rows[0]), LINE + "only the first row"),
    "a field of another version": (set_first("exchange", continues="a"), LINE + "exchange.continues: unknown field"),
}


async def ask(path: Path) -> str:
    asked = model(record(path, "scripted", mode="replay")).using(calculator).chat("12 * 34?")
    return (await asyncio.wait_for(asked.run(), 60)).text


def check(error: Exception, path: Path, said: str) -> bool:
    text = str(error)
    is_clear = isinstance(error, SettingsError) and "\n" not in text and len(text) < 600 and str(path) in text
    return is_clear and re.search(said, text) is not None


async def test_each_is_refused_with_one_line(tmp_path: Path) -> None:
    whole = tmp_path / "talk.jsonl"
    await (
        model(record(whole, ScriptedModel(["Let me see.", CALL], "It is 408.")))
        .using(calculator)
        .chat("12 * 34?")
        .run()
    )
    written = [json.loads(line) for line in whole.read_text(encoding="utf-8").splitlines()]
    damaged: dict[str, tuple[bytes, str]] = {
        name: (text if isinstance(text, bytes) else text.encode(), said) for name, (text, said) in TEXTS.items()
    }
    for name, (change, said) in CHANGES.items():
        rows = json.loads(json.dumps(written))
        change(rows)
        damaged[name] = "".join(json.dumps(row) + "\n" for row in rows).encode(), said
    path, wrong = tmp_path / "damaged.jsonl", []
    for name, (content, said) in damaged.items():
        path.write_bytes(content)
        try:
            wrong.append(f"{name}: {await ask(path)}")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
            if not check(error, path, said):
                wrong.append(f"{name}: {type(error).__name__}: {error!s:.400}")
            if name in TEXTS:
                record(path, "echo", mode="refresh")
    assert wrong == []


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "/dev/zero"):
        with pytest.raises(SettingsError, match="is not a file; name a recording"):
            record(tmp_path / name, "echo")


async def test_half_a_last_row_is_left_out_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    await model(record(path, ScriptedModel("One.", "Two."))).run_batch(["1", "2"])
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    assert (await model(record(path)).chat("1").run()).text == "One."
    assert (await model(record(path, ScriptedModel("Two."))).chat("2").run()).text == "Two."
    assert path.read_bytes() == whole


async def test_a_long_conversation_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    await model(record(path, ScriptedModel("One."))).chat("1").run()
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines = [json.dumps(row) for row in rows[:2]]
    lines += [json.dumps(rows[2] | {"id": str(at)}) for at in range(1_000)]
    lines += [json.dumps(rows[3] | {"id": f"e{at}", "messages": list(map(str, range(at)))}) for at in range(1, 1_000)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert (await asyncio.wait_for(model(record(path)).chat("1").run(), 60)).text == "One."


def test_an_answer_that_was_edited_is_what_the_next_request_begins_with(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    asked = model(record(path, ScriptedModel("One.", "Two."))).chat("1").run_sync()
    model(record(path, ScriptedModel("Two."))).chat(asked.conversation).chat("2").run_sync()
    path.write_text(path.read_text(encoding="utf-8").replace("One.", "First."), encoding="utf-8")
    again = model(record(path)).chat("1").run_sync()
    assert again.text == "First."
    assert model(record(path)).chat(again.conversation).chat("2").run_sync().text == "Two."


def test_an_empty_file_has_no_model(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").touch()
    with pytest.raises(ModelError, match="is empty; record it first"):
        record(tmp_path / "talk.jsonl")
