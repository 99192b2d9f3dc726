"""What is shown of a call is data, complete before anybody is asked: paths that change meanwhile change nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from running_tools import answer, answers, call

from ferrule.conversation import ToolResult
from ferrule.errors import ConversationError
from ferrule.execution import ApprovalRequest, Decision, Pending, Policy
from ferrule.execution.decisions import pending_from_json, pending_to_json
from ferrule.execution.preview import CallPreview, EffectPreview
from ferrule.session.terminal.call_display import CallDisplay
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.intent import Diff, Effect, Intent

ASK = Policy(profile="ask")


class Watching:
    """Denies every call, and keeps what it was shown."""

    confirms_edits = True

    def __init__(self) -> None:
        self.requests: list[ApprovalRequest] = []

    async def decide(self, request: ApprovalRequest) -> Decision:
        self.requests.append(request)
        return Decision.deny()


class WatchingTogether(Watching):
    """The same for several calls at once."""

    async def decide_all(self, requests: Sequence[ApprovalRequest]) -> Sequence[Decision]:
        return [await self.decide(one) for one in requests]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with a link out of it, one to a file of it, and a protected folder."""
    workspace = tmp_path / "ws"
    (workspace / ".git").mkdir(parents=True)
    (workspace / "a.txt").write_text("one\n")
    (workspace / "out").symlink_to("/etc")
    (workspace / "own").symlink_to("a.txt")
    return workspace


def make_writer(folder: Path) -> Tool:
    def preview(arguments: dict[str, str]) -> Intent:
        effects = (
            Effect("write", f"{folder}/{arguments['path']}"),
            Effect("write", f"{folder}/.git", is_protected=True),
            Effect("net", "files.example"),
        )
        return Intent(effects, Diff(f"{folder}/{arguments['path']}", "one\n", arguments["text"]))

    @tool(intent=preview)
    async def write(path: str, text: str = "two\n", mode: str = "w") -> str:
        """Write a file."""
        return path + text + mode

    return write.with_folders(folder)


def render(request: ApprovalRequest) -> list[str]:
    display = CallDisplay(1000)
    shown = [*display.render(request), *display.render_details(request), *display.summarize(request, "   1")]
    return [line.text for line in shown]


def test_the_preview_has_the_effects_with_their_marks(folder: Path) -> None:
    watching = Watching()
    answer(make_writer(folder), call("write", path="out/passwd", text="x\n"), policy=ASK, approver=watching)
    (request,) = watching.requests
    assert request.intent is not None
    first, second, third = request.intent.effects
    assert request.preview == CallPreview(
        (
            EffectPreview(first, "/etc/passwd", "/etc/passwd", is_changed=True),
            EffectPreview(second, None, f"{folder}/.git"),
            EffectPreview(third),
        ),
        Diff(f"{folder}/out/passwd", "one\n", "x\n"),
        {"path": "out/passwd", "text": "x\n"},
        {"mode": "w"},
    )
    assert request.preview.effects[0].leads_to == "/etc/passwd"
    assert not request.preview.is_command


@pytest.mark.parametrize("path", ["out/passwd", "own", "a.txt"])
def test_showing_it_touches_no_file(folder: Path, path: str) -> None:
    watching = Watching()
    answer(make_writer(folder), call("write", path=path, text="x\n"), policy=ASK, approver=watching)
    (request,) = watching.requests
    before = render(request)
    assert any("leads to /etc/passwd" in line for line in before) == (path == "out/passwd")
    assert any(f"{path} is: {folder}/a.txt" in line for line in before) == (path == "own")
    shutil.rmtree(folder)
    folder.symlink_to("/usr")
    assert render(request) == before
    assert replace(request, preview=None).find_preview() != request.preview, "the paths lead elsewhere by now"


def test_each_of_several_calls_has_one(folder: Path) -> None:
    watching = WatchingTogether()
    calls = [call("write", str(number), path="own", text="x\n") for number in range(2)]
    answers([make_writer(folder)], calls, policy=ASK, approver=watching)
    assert [one.preview is not None for one in watching.requests] == [True, True]


def test_nobody_pays_for_it_who_shows_nothing(folder: Path) -> None:
    requests: list[ApprovalRequest] = []

    def decide(request: ApprovalRequest) -> bool:
        requests.append(request)
        return False

    answer(make_writer(folder), call("write", path="own", text="x\n"), policy=ASK, approver=decide)
    assert requests[0].preview is None
    assert "  writes own  (+1 −1)" in render(requests[0]), "it is made where it is needed after all"


def test_a_call_that_waits_keeps_it_as_json(folder: Path) -> None:
    waiting = answer(make_writer(folder), call("write", path="out/passwd", text="x\n"), policy=ASK, on_ask="pause")
    assert isinstance(waiting, Pending)
    assert waiting.request is not None
    shown = render(waiting.request)
    stored = json.loads(json.dumps(pending_to_json(waiting)))
    shutil.rmtree(folder)
    again = pending_from_json(stored)
    assert again == waiting
    assert again.request is not None
    assert render(again.request) == shown
    del stored["request"]["preview"]
    older = pending_from_json(stored).request
    assert older is not None
    assert older.preview is None, "that of a version without previews"


@pytest.mark.parametrize(
    "preview",
    [1, {}, {"effects": 1}, {"effects": [1]}, {"effects": [{"kind": "read", "target": "a"}]},
     {"effects": [{"kind": "read", "target": "a", "outside": 1, "real_path": None, "is_changed": False}]}],
)  # fmt: skip
def test_a_damaged_one_is_refused(folder: Path, preview: object) -> None:
    waiting = answer(make_writer(folder), call("write", path="own", text="x\n"), policy=ASK, on_ask="pause")
    assert not isinstance(waiting, ToolResult)
    stored = json.loads(json.dumps(pending_to_json(waiting)))
    stored["request"]["preview"] = preview
    with pytest.raises(ConversationError):
        pending_from_json(stored)
