"""A session whose question is given up at a moment that asyncio itself leaves open."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest

from ferrule.cli.session_options import SessionOptions, open_session
from ferrule.conversation import Conversation, system
from ferrule.session.terminal.renderer import TextRenderer

QUESTION = "What is 12 * 12?"
OPTIONS = SessionOptions(as_json=True)


class InterruptedOnce:
    """A runner to which Ctrl-C comes between the making of the task and the loop's run."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        self._runner.get_loop().create_task(work)
        raise KeyboardInterrupt


def test_a_question_that_was_given_up_before_it_began_is_not_asked_later(capsys: pytest.CaptureFixture[str]) -> None:
    with open_session(OPTIONS) as session:
        runner = session.runner
        session.runner = InterruptedOnce(runner)  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            session.ask("Hello")
        session.runner = runner
        assert session.ask(QUESTION).stopped == "done"
    shown = capsys.readouterr().out
    assert '"answer": "12 × 12 is 144."' in shown
    assert shown.count('"event": "message"') == 2


def test_what_the_model_is_not_told_is_shown_once_in_a_conversation(capsys: pytest.CaptureFixture[str]) -> None:
    with open_session(OPTIONS) as session:
        for _ in range(2):
            session.session.conversation = Conversation((system("Be brief."),))
            assert session.ask(QUESTION).stopped == "done"
            assert session.ask(QUESTION).stopped == "done"
            session.session.start_new()
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if '"loss"' in line] == [
            '{"event": "loss", "kind": "system", "detail": "written at the start of the user message that follows it"}'
        ] * 2
        session.session.conversation = Conversation((system("Be brief."),))
        session.session.renderer = TextRenderer()
        assert session.ask(QUESTION).stopped == "done"
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == "not preserved  system: written at the start of the user message that follows it"
