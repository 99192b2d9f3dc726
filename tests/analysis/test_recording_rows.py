"""Recordings of an analysis: what is written and read back, what differs, and files that are damaged."""

from __future__ import annotations

import datetime
import decimal
import fractions
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from ferrule.analysis import run_analysis
from ferrule.analysis.asking import Asker, ModelChoice
from ferrule.analysis.limits import AnalysisLimits, LimitReached
from ferrule.analysis.recording import Recording, record_analysis, replay_analysis
from ferrule.analysis.recording.outcomes import decode_outcome, decode_value, encode_outcome, encode_value
from ferrule.analysis.recording.source import ANALYSIS, RUN, Beginning
from ferrule.analysis.recording.writer import RecordingWriter
from ferrule.analysis.result import AnalysisResult
from ferrule.analysis.stages import StageKey
from ferrule.blobs import BlobStore
from ferrule.conversation import Image
from ferrule.errors import DataError, OutputInvalid, SettingsError
from ferrule.models.protocol import Model
from ferrule.models.recording.rows import ValueRow, read_rows
from ferrule.models.scripted import ScriptedModel
from ferrule.sandbox.python.result import DataTable, Opaque, PythonResult, RunError
from tables import each_case

HEADER = Beginning(question="Well?")


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
    recording.begin(HEADER)
    model = ScriptedModel(*answers)
    recording.add_model(model)
    try:
        await ask(recording.wrap_model(model), *KEYS, **asked)
    finally:
        recording.finish(AnalysisResult("Well?"))
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
    assert [row["stage"] for row in rows if row["type"] == "exchange"] == [
        "analysis/complexity/0", "t2/code/0", "t2/code/0, request 2", "t2/code/1", "t10/code/0",
    ]  # fmt: skip
    assert not any(row["type"] == "shared" for row in rows[:3])
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


def compute(value: object) -> Callable[[], Awaitable[object]]:
    async def run() -> object:
        return value

    return run


async def test_runs_are_replayed_without_running_and_compared_when_they_run_again(tmp_path: Path) -> None:
    def identity(value: object) -> object:
        return value

    async def run(recording: Recording, value: object) -> object:
        made = None if recording.is_replay else compute(value)
        return await recording.run("t1", "6 * 7", {}, made, encode=identity, decode=identity)

    path = tmp_path / "run.jsonl"
    recording = record_analysis(path)
    recording.begin(HEADER)
    assert await run(recording, {"mean": 42.0, "rows": [1, 2]}) == {"mean": 42.0, "rows": [1, 2]}
    recording.finish(AnalysisResult("Well?"))
    assert await run(replay_analysis(path), "not run") == {"mean": 42.0, "rows": [1, 2]}
    again = replay_analysis(path, computes=True)
    await run(again, {"mean": 42.0 + 1e-12, "rows": [1, 3]})
    assert again.compared == 1
    assert [str(one) for one in again.differences] == ["t1/run/0.rows[1]: recorded 2, now 3"]


async def test_half_a_last_row_is_left_out(tmp_path: Path) -> None:
    path = await recorded(tmp_path / "run.jsonl", *map(say, "abcd"))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], lines[-1][:9]]))
    recording = replay_analysis(path)
    assert recording.source is not None
    assert recording.source.file.is_cut_off
    assert await ask(recording.make_model("scripted"), KEYS[1]) == ["b"]


def test_a_recording_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text("")
    with pytest.raises(SettingsError, match="exists already"):
        record_analysis(tmp_path / "run.jsonl")
    with pytest.raises(OSError, match="no folder"):
        record_analysis(tmp_path / "none" / "run.jsonl")


async def test_an_analysis_that_did_not_begin_leaves_no_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with pytest.raises(DataError, match="doesn't exist"):
        await run_analysis("Well?", data=["none.csv"], model=ScriptedModel(), recording=record_analysis(path))
    assert not path.exists()


def test_figures_lie_beside_the_recording(tmp_path: Path) -> None:
    recording = record_analysis(tmp_path / "run.jsonl")
    recording.begin(HEADER)
    name = recording.put_blob(b"PNG")
    recording.finish(AnalysisResult("Well?"))
    again = replay_analysis(tmp_path / "run.jsonl")
    assert again.get_blob(name) == b"PNG"
    (tmp_path / "run.blobs" / name).unlink()
    with pytest.raises(SettingsError, match=r"copy the folder run.blobs along"):
        again.get_blob(name)


def test_runs_of_a_task_keep_their_order(tmp_path: Path) -> None:
    runs = [ValueRow(name=RUN, stage=stage) for stage in ("t2/run/0", "t1/run/1", "t2/run/1", "t1/run/2")]
    writer = RecordingWriter(tmp_path / "run.jsonl")
    for row in (*runs, ValueRow(name=ANALYSIS, value={"question": "Well?"})):
        writer.add(row)
    writer.close()
    ordered = [row.stage for _, row in read_rows(tmp_path / "run.jsonl")[0] if isinstance(row, ValueRow)]
    assert ordered == ["", "t1/run/1", "t1/run/2", "t2/run/0", "t2/run/1"]


VALUES = [
    {"mean": 1.5, "rows": [1, None, True, "x"]},
    {1: "one", (2, 3): {"$weird": float("inf")}},
    {frozenset({1}), (1, 2)},
    (datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC), datetime.date(2026, 1, 2), datetime.timedelta(1, 2, 3)),
    [decimal.Decimal("1.10"), fractions.Fraction(1, 3), 1 + 2j, b"bytes", {}],
    DataTable(("a", "b"), ((1, "x"), (2.5, None)), (0, 1), 7),
    Image(b"\x89PNG", "image/png"),
    Opaque("Model", "<model>"),
]


@each_case("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_come_back_as_they_were(value: object) -> None:
    blobs = BlobStore()

    def get(name: str) -> bytes:
        return blobs.get(name) or b""

    written = json.loads(json.dumps(encode_value(value, blobs.put), allow_nan=False))
    again = decode_value(written, get)
    assert again == value
    assert type(again) is type(value)


def test_an_array_comes_back_with_its_type() -> None:
    numpy = pytest.importorskip("numpy")
    blobs = BlobStore()
    value = numpy.arange(6, dtype="<f4").reshape(2, 3)
    again = decode_value(json.loads(json.dumps(encode_value(value, blobs.put))), lambda _: b"")
    assert again.dtype == value.dtype
    assert (again == value).all()
    scalar = decode_value(encode_value(numpy.float64(0.1), blobs.put), lambda _: b"")
    assert scalar == 0.1


def test_a_run_comes_back_without_its_times() -> None:
    blobs = BlobStore()
    done = PythonResult(
        {"x": 1}, "out", "", {"a.txt": b"A"}, (Image(b"\x89PNG", "image/png"),), RunError("exception", "no", "tb", 3)
    )
    written = json.loads(json.dumps(encode_outcome(done, blobs.put)))
    assert "usage" not in written
    assert decode_outcome(written, lambda name: blobs.get(name) or b"") == done
    with pytest.raises(KeyError, match=r"\$no"):
        decode_outcome({"value": {"$no": 1}}, lambda _: b"")
