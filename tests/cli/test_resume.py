"""`ferrule chat --resume` of a conversation whose calls wait: a person is asked, and it goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from terminals import Terminal, assert_refused, ferrule

from ferrule import Decision, Policy, ToolCall, ToolRegistry, model
from ferrule.agent.run import Run
from ferrule.conversation import Conversation, assistant, user
from ferrule.models.scripted import ScriptedModel
from ferrule.store import Store

CALLS = [ToolCall("call_1", "wait", '{"seconds": 0.1}'), ToolCall("call_2", "wait", '{"seconds": 0.2}')]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept.db"


@pytest.fixture
def paused(waiting_folder: Path) -> Run:
    """A run that another program made, paused at two calls."""
    tools = ToolRegistry.discover(waiting_folder)
    pipeline = model(ScriptedModel(CALLS)).using(tools, policy=Policy(profile="ask"), on_ask="pause")
    run = asyncio.run(pipeline.chat("Wait.").run())
    assert (run.stopped, len(run.pending)) == ("paused", 2)
    return run


def kept(path: Path, run: Run, **decisions: Decision) -> str:
    with Store(path) as store:
        return store.save(run.conversation, pending=run.pending, decisions=decisions)


def results(path: Path, name: str) -> dict[str, str]:
    with Store(path) as store:
        stored = store.load(name)
    assert (stored.pending, stored.decisions) == ((), {})
    return {m.result.call_id: m.result.status for m in stored.conversation.messages if m.role == "tool"}


def options(name: str, path: Path, folder: Path) -> tuple[str | Path, ...]:
    return ("chat", "--model", "echo", "--resume", name, "--store", path, "--tools", folder)


def test_a_person_is_asked_about_each_call(paused: Run, path: Path, waiting_folder: Path) -> None:
    name = kept(path, paused)
    with Terminal(*options(name, path, waiting_folder)) as terminal:
        terminal.expect("▸ wait asks to run")
        terminal.expect("[y]es")
        terminal.type("y\r")
        terminal.expect("▸ wait asks to run")
        terminal.expect("[y]es")
        terminal.type("n not now\r")
        terminal.expect("→  waited")
        terminal.expect("denied: not now")
        terminal.expect("› ")
        terminal.type("And now?\r")
        terminal.expect("And now?")
        terminal.type("/quit\r")
        assert terminal.ended() == 0
    assert results(path, name) == {"call_1": "ok", "call_2": "denied"}


def test_what_was_decided_is_not_asked_again(paused: Run, path: Path, waiting_folder: Path) -> None:
    name = kept(path, paused, call_1=paused.pending[0].decide(Decision.allow()))
    with Terminal(*options(name, path, waiting_folder)) as terminal:
        terminal.expect("seconds: 0.2")
        terminal.expect("[y]es")
        terminal.type("y\r")
        terminal.expect("waited\r\nwaited")
        terminal.expect("› ")
        terminal.type("\x04")
        assert terminal.ended() == 0
    assert results(path, name) == {"call_1": "ok", "call_2": "ok"}


def test_what_is_left_undecided_goes_on_waiting(paused: Run, path: Path, waiting_folder: Path) -> None:
    name = kept(path, paused)
    with Terminal(*options(name, path, waiting_folder)) as terminal:
        terminal.expect("[y]es")
        terminal.type("y\r")
        terminal.expect("[y]es")
        terminal.type("\x03")
        terminal.expect("› ")
        terminal.type("/quit\r")
        assert terminal.ended() == 0
    with Store(path) as store:
        stored = store.load(name)
    assert stored.conversation == paused.conversation
    assert [one.call.id for one in stored.pending] == ["call_1", "call_2"]
    assert [(call, one.action) for call, one in stored.decisions.items()] == [("call_1", "allow")]


def test_yes_answers_for_the_person(paused: Run, path: Path, waiting_folder: Path) -> None:
    name = kept(path, paused)
    done = ferrule(*options(name, path, waiting_folder), "--yes")
    assert (done.returncode, done.stdout.splitlines()[-2:]) == (0, ["waited", "waited"])
    assert results(path, name) == {"call_1": "ok", "call_2": "ok"}


def test_where_it_can_not_go_on_it_is_refused_and_nothing_is_lost(
    paused: Run, path: Path, waiting_folder: Path
) -> None:
    name = kept(path, paused)
    done = ferrule(*options(name, path, waiting_folder))
    assert done.returncode == 2
    assert "2 calls wait for a decision, and nobody can be asked here" in done.stderr
    done = ferrule(*options(name, path, waiting_folder)[:-2], "--yes")
    assert "ends in calls of wait, which is not offered here" in done.stderr
    with Store(path) as store:
        assert len(store.load(name).pending) == 2


def test_open_calls_that_wait_for_nothing_run_by_the_policy(path: Path) -> None:
    with Store(path) as store:
        call = ToolCall("call_1", "calculator", '{"expression": "2 + 3"}')
        name = store.save(Conversation((user("2 + 3?"), assistant(call))))
    done = ferrule("chat", "--model", "echo", "--resume", name, "--store", path)
    assert (done.returncode, done.stdout) == (0, "▸ calculator  2 + 3  →  5\n5\n")
    assert results(path, name) == {"call_1": "ok"}


def test_an_id_that_is_not_there_is_refused(path: Path, paused: Run) -> None:
    kept(path, paused)
    assert_refused(ferrule("chat", "--resume", "nonsense", "--store", path), "no conversation has the id 'nonsense'")
