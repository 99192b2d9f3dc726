"""What a session that a command opens shows of its conversation."""

from __future__ import annotations

import pytest

from ferrule.cli.session_options import SessionOptions, open_session
from ferrule.conversation import Conversation, system
from ferrule.session.terminal.renderer import TextRenderer

QUESTION = "What is 12 * 12?"
OPTIONS = SessionOptions(as_json=True)


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
