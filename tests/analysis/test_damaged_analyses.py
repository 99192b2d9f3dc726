"""Recordings of analyses as a stranger makes them: each is refused with one line, and none hangs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from written_sales import FOLDER

from ferrule.analysis import AnalysisResult, run_analysis
from ferrule.analysis.recording import replay_analysis
from ferrule.errors import SettingsError

Rows = list[dict[str, Any]]
SHIPPED = FOLDER / "sales.jsonl"
DEEP = '"DEEP"'
ROWS: Rows = [json.loads(line) for line in SHIPPED.read_text(encoding="utf-8").splitlines()]
LINE = r"line \d+: a damaged row: "
LOOP = {"approach": "", "tasks": [{"id": "a", "tool": "logic_kernel", "query": "?", "needs": ["a"]}]}


def value(name: str, *path: str, to: Any) -> Callable[[Rows], None]:
    """Replace part of the first value of a name."""

    def change(rows: Rows) -> None:
        inner = next(row for row in rows if row.get("name") == name)
        for one in ("value", *path)[:-1]:
            inner = inner[one]
        inner[("value", *path)[-1]] = to

    return change


def outcome(to: Any) -> Callable[[Rows], None]:
    """Replace what the first program left."""
    return value("run", "outcome", "value", to=to)


def add(**row: Any) -> Callable[[Rows], None]:
    """Append a row."""
    return lambda rows: rows.append(row)


def first(kind: str, **fields: Any) -> Callable[[Rows], None]:
    """Change fields of the first row of a type."""
    return lambda rows: next(row for row in rows if row["type"] == kind).update(fields)


def nest(levels: int) -> Any:
    """A list in lists."""
    inner: Any = 0
    for _ in range(levels):
        inner = [inner]
    return inner


def write_no_message(rows: Rows) -> None:
    """Replace the first message of the first request."""
    name = next(row for row in rows if row["type"] == "exchange")["messages"][0]
    next(row for row in rows if row.get("id") == name)["value"] = {"role": "user", "parts": [5]}


DAMAGED: dict[str, tuple[Callable[[Rows], None], str]] = {
    "no analysis": (lambda rows: rows.pop(1) and None, "it is of no analysis"),
    "header: a list": (value("analysis", to=[]), LINE),
    "header: no question": (value("analysis", to={}), LINE + "question: field required"),
    "header: unknown": (value("analysis", "colour", to="red"), LINE + "colour: unknown field"),
    "header: data": (value("analysis", "data", to=[{"name": None}]), LINE + r"data\.0\.path: field required"),
    "header: settings": (value("analysis", "settings", to={"mode": "loud"}), "mode"),
    "header: unknown setting": (value("analysis", "settings", to={"\n": 1}), LINE + "unknown setting"),
    "header: prices": (value("analysis", "prices", to={"m": {"input": "x", "as_of": "32.13."}}), "prices"),
    "header: a model without answers": (value("analysis", "model", to="other"), "no answers of other"),
    "continues itself": (value("analysis", "continues", to="run.jsonl"), "run.jsonl"),
    "continues a folder": (value("analysis", "continues", to="."), "is not a file"),
    "continues a device": (value("analysis", "continues", to="/dev/zero"), "is not a file"),
    "continues a pipe": (value("analysis", "continues", to="pipe"), "is not a file"),
    "continues no path": (value("analysis", "continues", to="a\0b"), "no path"),
    "end: times": (value("end", "times", to={"t1": ["soon", 1]}), LINE + "times"),
    "end: usage": (value("end", "usage", to={"prompt_tokens": "many"}), LINE + "usage"),
    "end: a number": (value("end", to=5), LINE),
    "data: a text": (value("data", to="tables"), LINE),
    "data: a table": (value("data", "tables", to=[{"name": 5}]), LINE),
    "data: no path": (value("data", "tables", to=[{"path": 5}]), LINE),
    "tools: a text": (add(type="value", name="tools", value="all"), LINE),
    "tools: names": (add(type="value", name="tools", value={"own": 5, "added": []}), LINE),
    "tools: no tool": (add(type="value", name="tools", value={"own": [], "added": [{"name": "a"}]}), LINE),
    "tools: its schema": (
        add(
            type="value",
            name="tools",
            value={"own": [], "added": [{"name": "a", "description": "", "parameters": {"type": "x"}}]},
        ),
        LINE,
    ),
    "plan: itself": (add(type="value", name="approved plan", value=LOOP), "Task a needs its own result"),
    "plan: a text": (add(type="value", name="approved plan", value="go on"), LINE),
    "result: empty": (add(type="value", name="result", stage="t1/x/0", value={}), LINE + "'message' is missing"),
    "result: of nobody": (
        add(type="value", name="result", stage="t1/x/0", value={"message": {"role": "user", "parts": []}, "data": 0}),
        LINE,
    ),
    "run: a list": (value("run", to=[]), LINE),
    "run: an outcome": (value("run", "outcome", to=[1]), LINE),
    "run: its output": (value("run", "outcome", "stdout", to=["x"]), LINE),
    "run: its error": (value("run", "outcome", "error", to={"kind": "bored", "message": 1}), LINE),
    "run: its files": (value("run", "outcome", "files", to={"a": "../sales.csv"}), "is missing; copy the folder"),
    "run: a figure": (value("run", "outcome", "images", to=[{"$image": ["0" * 16, "image/png"]}]), "is missing; copy"),
    "run: no figure": (value("run", "outcome", "images", to=[5]), LINE),
    "blob: a path": (outcome({"$bytes": "../sales.csv"}), "is missing; copy the folder"),
    "blob: a number": (outcome({"$bytes": 5}), "is missing; copy the folder"),
    "blob: another content": (outcome({"$bytes": "changed"}), "was changed"),
    "image: its type": (outcome({"$image": ["58d16f644ba62d6f", 7]}), LINE),
    "day 32": (outcome({"$date": "2026-01-32"}), LINE),
    "a date as a number": (outcome({"$date": 20260101}), LINE),
    "a duration without end": (outcome({"$timedelta": [1e308, 0, 0]}), LINE),
    "no decimal": (outcome({"$decimal": "x"}), LINE),
    "a fraction by zero": (outcome({"$fraction": "1/0"}), LINE),
    "a fraction of a billion digits": (outcome({"$fraction": "1e999999999"}), LINE),
    "an array of objects": (outcome({"$array": ["O", [1], "AAAAAAAAAAA="]}), LINE),
    "an array of gigabytes": (outcome({"$array": ["<f8", [1 << 40], ""]}), LINE),
    "an array in no base": (outcome({"$array": ["<f8", [1], "%%%"]}), LINE),
    "a table that doesn't fit": (
        outcome({"$table": {"columns": ["a"], "rows": [[1, 2]], "index": [0], "total_rows": 1}}),
        LINE,
    ),
    "unknown data": (outcome({"$exec": "rm"}), LINE),
    "data beside a tag": (outcome({"$date": "2026-01-01", "x": 1}), LINE),
    "a set of lists": (outcome({"$set": [[1]]}), LINE),
    "deep data": (outcome(nest(260)), LINE + "it is nested more than 250 levels deep"),
    "deeper than JSON goes": (outcome("DEEP"), LINE + "it is nested too deeply"),
    "answer: of a user": (first("exchange", answer={"role": "user", "parts": []}), LINE),
    "answer: no parts": (first("exchange", answer={"role": "assistant", "parts": 5}), LINE),
    "answer: usage": (first("exchange", usage={"prompt_tokens": "x"}), LINE),
    "answer: why it ended": (first("exchange", stop="bored"), LINE + r"exchange\.stop"),
    "answer: none": (first("exchange", answer=None), LINE),
    "request: a row that isn't there": (first("exchange", messages=["ffff"]), LINE + "it names the row ffff"),
    "request: no message": (write_no_message, LINE),
    "functions: no list": (add(type="value", name="function x", shared=["ffff"]), LINE),
    "a second first row": (lambda rows: rows.insert(3, rows[0]), LINE + "only the first row"),
    "a row of nothing": (add(type="wings"), LINE),
}


HARMLESS: dict[str, Callable[[Rows], None]] = {
    "a decimal of a billion digits": outcome({"$decimal": "1e999999999"}),
    "a time that never ends": value("end", "seconds", to=1e308),
    "half a last row": lambda rows: None,
}
"""What is replayed, if not as it was: an analysis says in its result why it is partial."""


def write(change: Callable[[Rows], None], folder: Path) -> Path:
    """The recording that ships, damaged, in a folder of its own."""
    shutil.copytree(SHIPPED.with_suffix(".blobs"), folder / "run.blobs")
    (folder / "run.blobs" / "changed").write_bytes(b"?")
    os.mkfifo(folder / "pipe")
    rows = json.loads(json.dumps(ROWS))
    change(rows)
    lines = [json.dumps(row).replace(DEEP, "[" * 200_000 + "]" * 200_000) for row in rows]
    (folder / "run.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "run.jsonl"


async def replay(path: Path) -> AnalysisResult:
    return await asyncio.wait_for(run_analysis("", recording=replay_analysis(path)), 60)


async def test_each_is_refused_with_one_line(tmp_path: Path) -> None:
    wrong = []
    for name, (change, said) in DAMAGED.items():
        path = write(change, tmp_path / name)
        try:
            await replay(path)
            wrong.append(f"{name}: replayed")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
            text = str(error)
            is_clear = isinstance(error, SettingsError) and "\n" not in text and len(text) < 700
            if not is_clear or not re.search(said, text):
                wrong.append(f"{name}: {type(error).__name__}: {text:.400}")
    assert wrong == []


async def test_harmless_ones_are_replayed(tmp_path: Path) -> None:
    for name, change in HARMLESS.items():
        path = write(change, tmp_path / name)
        if name == "half a last row":
            path.write_bytes(path.read_bytes()[:-40])
        result = await replay(path)
        assert result.tasks or result.stopped, name


def test_one_of_the_first_version_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"type": "analysis", "version": 1, "question": "Well?"}\n')
    with pytest.raises(SettingsError, match=r"has the version 1, and .* reads 2; delete it and record again$"):
        replay_analysis(path)
