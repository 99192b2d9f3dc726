"""Recordings whose folder, day, branch and machine are others than those of the replay."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ferrule import Policy, ScriptedModel, ToolCall, model, record, tool
from ferrule.agent.pipeline import Pipeline
from ferrule.agent.run import Run
from ferrule.coding.agent import make_agent
from ferrule.coding.instructions import list_facts
from ferrule.conversation import Conversation
from ferrule.errors import RequestNotRecorded, SettingsError
from ferrule.events import TextDelta
from ferrule.models.recording.model import RecordedModel


def make_clone(folder: Path, branch: str) -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git/HEAD").write_text(f"ref: refs/heads/{branch}\n")
    (folder / "AGENTS.md").write_text("Use tabs.\n")
    (folder / "inner").mkdir()
    return folder / "inner"


def make_recorded(path: Path, folder: Path, day: int, *script: str | Sequence[str | ToolCall]) -> Pipeline[None]:
    now = datetime(2026, 11, day, tzinfo=UTC)
    facts = list_facts(folder, now)
    recorded = record(path, ScriptedModel(*script) if script else None, facts=facts)
    return make_agent(replace(model(recorded), conversation=Conversation((), now)), folder)


async def look(pipeline: Pipeline[None], folder: Path, question: str = "Where are we?") -> Run[None]:
    @tool(read_only=True)
    def where(path: str) -> str:
        """Say where it is."""
        return f"{path} is in {folder}, found in 0.{len(str(folder))} seconds"

    return await pipeline.using(where, policy=Policy(profile="auto")).chat(question).run()


async def test_a_recording_is_replayed_in_another_folder_on_another_day_and_branch(tmp_path: Path) -> None:
    path, here, there = (
        tmp_path / "talk.jsonl",
        make_clone(tmp_path / "here", "main"),
        make_clone(tmp_path / "b/c", "x"),
    )
    call = ToolCall("call_1", "where", json.dumps({"path": str(here / "a.py")}))
    first = await look(make_recorded(path, here, 23, ["Looking into ", call], f"It is {here}/a.py."), here)
    written = path.read_text("utf-8")
    assert str(tmp_path) not in written
    assert "2026-11-23" not in written
    assert "on branch" not in written
    again = await look(make_recorded(path, there, 24), there)
    assert first.text == f"It is {here}/a.py."
    assert again.text == f"It is {there}/a.py."
    assert f"{there}/a.py is in {there}" in again.conversation.messages[3].result.text
    follow = await look(make_recorded(path, here, 30), here)
    assert follow.text == first.text


async def test_a_changed_prompt_tool_or_question_is_still_noticed(tmp_path: Path) -> None:
    path, here = tmp_path / "talk.jsonl", make_clone(tmp_path / "here", "main")
    await look(make_recorded(path, here, 23, "Here."), here)
    with pytest.raises(RequestNotRecorded, match="message 1"):
        await look(make_recorded(path, here, 23), here, "Where were we?")
    with pytest.raises(RequestNotRecorded, match="tool"):
        await make_recorded(path, here, 23).chat("Where are we?").run()
    (here.parent / "AGENTS.md").write_text("Use spaces.\n")
    with pytest.raises(RequestNotRecorded, match=r"message 0 \(system\): .*tabs.*spaces"):
        await look(make_recorded(path, here, 23), here)


async def test_a_fact_that_is_cut_by_the_stream_is_put_back_whole(tmp_path: Path) -> None:
    class Chopped(ScriptedModel):
        async def stream(self, conversation, tools, settings):
            async for event in super().stream(conversation, tools, settings):
                if isinstance(event, TextDelta):
                    for character in event.text:
                        yield TextDelta(character)
                else:
                    yield event

    path = tmp_path / "talk.jsonl"
    await (
        model(record(path, Chopped("See /home/me/x, and /home/me-too."), facts={"home": "/home/me"}))
        .chat("Where?")
        .run()
    )
    asked = record(path, mode="replay", facts={"home": "/root"})
    async with model(asked).chat("Where?").stream() as run:
        pieces = [event.text async for event in run if isinstance(event, TextDelta)]
    assert "".join(pieces) == run.text == "See /root/x, and /home/me-too."


async def test_what_is_longer_is_recognised_first_and_only_whole_paths_are(tmp_path: Path) -> None:
    facts = {"root": "/w/a", "inner": "/w/a/b"}
    path = tmp_path / "talk.jsonl"
    text = "/w/a/b/c /w/a/c /w/ab /w/a-b x/w/a /w/a"
    await model(record(path, ScriptedModel(text), facts=facts)).chat("Where?").run()
    run = await model(record(path, facts={"root": "/one", "inner": "/1/2"})).chat("Where?").run()
    assert run.text == "/1/2/c /one/c /w/ab /w/a-b x/w/a /one"


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"A b": "/home"}, "the fact 'A b': name it by lower-case letters"),
        ({"home": ""}, "the fact 'home' is a text of at least 3 characters, not ''"),
        ({"home": 3}, "the fact 'home' is a text of at least 3 characters, not 3"),
    ],
)
def test_what_cannot_be_a_fact_is_refused(tmp_path: Path, facts: dict, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        record(tmp_path / "talk.jsonl", ScriptedModel("x"), facts=facts)


def test_without_facts_nothing_is_replaced(tmp_path: Path) -> None:
    recorded = record(tmp_path / "talk.jsonl", ScriptedModel("⟦workspace⟧"))
    assert isinstance(recorded, RecordedModel)
    assert model(recorded).chat("x").run_sync().text == "⟦workspace⟧"
    assert model(record(tmp_path / "talk.jsonl")).chat("x").run_sync().text == "⟦workspace⟧"
