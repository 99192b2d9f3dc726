"""Recordings of an analysis: what is written and read back, what differs, and files that are damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from ferrule.analysis.asking import Asker, ModelChoice
from ferrule.analysis.limits import AnalysisLimits, LimitReached
from ferrule.analysis.recording import Recording, record_analysis, replay_analysis
from ferrule.analysis.recording.rows import RunRow
from ferrule.analysis.recording.writer import sort_rows
from ferrule.analysis.stages import StageKey
from ferrule.errors import OutputInvalid, SettingsError
from ferrule.models.protocol import Model
from ferrule.models.scripted import ScriptedModel


class Verdict(BaseModel):
    text: str


def asker(model: Model) -> Asker:
    return Asker(ModelChoice(model), AnalysisLimits())


async def ask(model: Model, *keys: StageKey, instructions: str = "Judge.", question: str = "Well?") -> list[str]:
    one = asker(model)
    return [(await one.ask(key, instructions, question, Verdict, temperature=0.2)).text for key in keys]


KEYS = (StageKey("analysis", "complexity"), StageKey("t10", "code"), StageKey("t2", "code"), StageKey("t2", "code", 1))


async def recorded(path: Path, *answers: str, **asked: str) -> Path:
    recording = record_analysis(path)
    recording.begin("Well?", {}, [])
    model = ScriptedModel(*answers)
    recording.add_model(model)
    try:
        await ask(recording.wrap_model(model), *KEYS, **asked)
    finally:
        recording.finish(None, {}, 0.0)
    return path


def say(text: str) -> str:
    return json.dumps({"text": text})


async def test_answers_are_replayed_by_stage_in_any_order(tmp_path: Path) -> None:
    path = await recorded(tmp_path / "run.jsonl", say("one"), say("two"), "not JSON", say("three"), say("four"))
    recording = replay_analysis(path)
    assert await ask(recording.make_model("scripted"), *KEYS[::-1]) == ["four", "three", "two", "one"]
    assert recording.changes == []
    # Those of a task stand together, and t2 before t10, whichever was asked first.
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["task"] for row in rows if row["type"] == "answer"] == ["analysis", "t2", "t2", "t2", "t10"]
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_changed_prompt_is_named(tmp_path: Path) -> None:
    path = await recorded(tmp_path / "run.jsonl", *map(say, "abcd"))
    recording = replay_analysis(path)
    assert await ask(recording.make_model("scripted"), KEYS[2], instructions="Judge well.") == ["c"]
    (change,) = recording.changes
    assert str(change).startswith("t2/code/0: message 0 (system): recorded 'Judge.")


async def test_an_error_is_replayed(tmp_path: Path) -> None:
    with pytest.raises(OutputInvalid):
        await recorded(tmp_path / "run.jsonl", "no", "no", "no")
    recording = replay_analysis(tmp_path / "run.jsonl")
    with pytest.raises(OutputInvalid):
        await ask(recording.make_model("scripted"), KEYS[0])


async def test_where_a_recording_ends_the_analysis_does(tmp_path: Path) -> None:
    path = await recorded(tmp_path / "run.jsonl", *map(say, "abcd"))
    recording = replay_analysis(path)
    with pytest.raises(LimitReached, match=r"no answer to t3/code/0"):
        await ask(recording.make_model("scripted"), StageKey("t3", "code"))
    with pytest.raises(SettingsError, match="no answers of openai:gpt-5, only of: scripted"):
        recording.make_model("openai:gpt-5")


async def test_no_key_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARROT_API_KEY", "polly-wants-a-cracker")
    form = "sk-" + "a1B2" * 6
    path = await recorded(
        tmp_path / "run.jsonl", say("polly-wants-a-cracker"), *map(say, "bcd"), question=f"Why {form}?"
    )
    text = path.read_text()
    assert "polly-wants" not in text
    assert form not in text
    assert text.count("[scrubbed]") >= 2


def compute(value: object) -> object:
    async def run() -> object:
        return value

    return run


async def test_runs_are_replayed_without_running_and_compared_when_they_run_again(tmp_path: Path) -> None:
    def identity(value: object) -> object:
        return value

    async def run(recording: Recording, value: object) -> object:
        return await recording.run(
            "t1", "6 * 7", {}, compute(value), encode=identity, decode=identity  # type: ignore[arg-type]
        )  # fmt: skip

    path = tmp_path / "run.jsonl"
    recording = record_analysis(path)
    recording.begin("Well?", {}, [])
    assert await run(recording, {"mean": 42.0, "rows": [1, 2]}) == {"mean": 42.0, "rows": [1, 2]}
    recording.finish(None, {}, 1.0)
    assert await run(replay_analysis(path), "not run") == {"mean": 42.0, "rows": [1, 2]}
    again = replay_analysis(path, computes=True)
    await run(again, {"mean": 42.0 + 1e-12, "rows": [1, 3]})
    assert again.compared == 1
    assert [str(one) for one in again.differences] == ["t1/run/0.rows[1]: recorded 2, now 3"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: ["x"], "line 1: not a recording of an analysis, or a damaged one: it is not JSON"),
        (lambda lines: ['{"version": 1}'], "line 1: not a recording of an analysis, which begins with"),
        (lambda lines: [lines[0].replace('"version": 1', '"version": 0')], "line 1: the recording has the version 0"),
        (lambda lines: [lines[0], "{", *lines[1:]], "line 2: a damaged row: it is not JSON"),
        (lambda lines: [lines[0], '{"type": "answer", "task": 7, "stage": "code"}', ""], "line 2: a damaged row: "),
        (lambda lines: [], "the recording is empty"),
    ],
)
async def test_damage_is_told_with_its_line(tmp_path: Path, change: object, said: str) -> None:
    path = await recorded(tmp_path / "run.jsonl", *map(say, "abcd"))
    path.write_text("\n".join(change(path.read_text().splitlines())))  # type: ignore[operator]
    with pytest.raises(SettingsError, match=said) as caught:
        replay_analysis(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


async def test_half_a_last_row_is_left_out(tmp_path: Path) -> None:
    path = await recorded(tmp_path / "run.jsonl", *map(say, "abcd"))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], lines[-1][:9]]))
    recording = replay_analysis(path)
    assert recording.source is not None
    assert recording.source.is_cut_off
    assert await ask(recording.make_model("scripted"), KEYS[1]) == ["b"]


def test_a_recording_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text("")
    with pytest.raises(SettingsError, match="exists already"):
        record_analysis(tmp_path / "run.jsonl")
    with pytest.raises(OSError, match="no folder"):
        record_analysis(tmp_path / "none" / "run.jsonl")


def test_figures_lie_beside_the_recording(tmp_path: Path) -> None:
    recording = record_analysis(tmp_path / "run.jsonl")
    recording.begin("Well?", {}, [])
    name = recording.put_blob(b"PNG")
    recording.finish(None, {}, 0.0)
    again = replay_analysis(tmp_path / "run.jsonl")
    assert again.get_blob(name) == b"PNG"
    (tmp_path / "run.blobs" / name).unlink()
    with pytest.raises(SettingsError, match=r"copy the folder run.blobs along"):
        again.get_blob(name)


def test_runs_of_a_task_keep_their_order() -> None:
    rows = [RunRow(task=task, number=number, code="") for task, number in (("t2", 0), ("t1", 1), ("t2", 1), ("t1", 2))]
    ordered = [row for row in sort_rows(rows) if isinstance(row, RunRow)]
    assert [(row.task, row.number) for row in ordered] == [("t1", 1), ("t1", 2), ("t2", 0), ("t2", 1)]
