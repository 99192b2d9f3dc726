"""One renderer for every screen: which calls were cancelled, and as what they are shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferrule.agent.run import Run
from ferrule.conversation import Conversation, Message, ToolCall, assistant, tool_message, user
from ferrule.events import NO_USAGE, MessageFinished, ResultReady, ToolStarted
from ferrule.execution import make_cancelled_result
from ferrule.execution.error_results import make_not_run_result
from ferrule.session.terminal.prompt_screen import PromptScreen
from ferrule.session.terminal.renderer import OutputScreen, TextRenderer

CALLS = tuple(ToolCall(f"c{number}", "send", f'{{"text": "{number}"}}') for number in range(4))
EDITED = replace(CALLS[1], arguments='{"text": "shorter"}')
RESULTS = [make_cancelled_result(CALLS[1]), make_not_run_result(CALLS[2], "stopped")]


def cancel(renderer: TextRenderer) -> None:
    """One call was answered, an edited one was stopped, one was not run, and one waits for a decision."""
    renderer.show(MessageFinished(assistant(*CALLS), NO_USAGE, "calls"))
    renderer.show(ToolStarted(CALLS[0]))
    answered = replace(make_cancelled_result(CALLS[0]), status="ok")
    renderer.show(ResultReady(answered))
    renderer.show(ToolStarted(EDITED, is_edited=True))
    messages: list[Message] = [user("Send."), assistant(*CALLS), *map(tool_message, (answered, *RESULTS))]
    renderer.finish(Run(Conversation(messages), stopped="cancelled"))


def test_cancelled_calls_on_standard_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    cancel(TextRenderer(OutputScreen()))
    assert capsys.readouterr().out.splitlines()[1:] == [
        "▸ send  shorter  (edited by you)  →  cancelled",
        "▸ send  2  →  not run",
    ]


def test_cancelled_calls_above_a_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    printed: list[str] = []
    drawn: list[int] = []
    screen = PromptScreen(printed.append, lambda: 140)
    cancel(TextRenderer(screen, lambda: drawn.append(len(list(screen.list_live_lines(9))))))
    assert [line.rstrip() for line in "".join(printed).splitlines()[1:]] == [
        '▸ send  text="shorter"  (edited by you)  →  stopped; it may have taken effect',
        '▸ send  text="2"  →  not run',
    ]
    assert drawn == [4, 4, 3, 3, 0], "the calls without a result, as long as the turn goes on"
