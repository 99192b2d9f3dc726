"""Approvers that decide on several calls of one message, edits that are confirmed, comments, and calls in conflict."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from running_tools import answer, answers, call

from ferrule.errors import PolicyError, ToolRetry
from ferrule.execution import ApprovalRequest, Decision, FileJournal, Pending, Policy, Rule, SessionGrants
from ferrule.execution.decisions import decision_from_json, decision_to_json, pending_from_json, pending_to_json
from ferrule.execution.journal import read_entries
from ferrule.session.approvals import AllowAll
from ferrule.tools.decorator import tool
from ferrule.tools.intent import Diff, Effect, Intent

ASK = Policy(profile="ask")


@tool
async def double(number: int) -> int:
    """Double it."""
    return 2 * number


@dataclass
class Together:
    """Somebody who is shown several calls at once."""

    answer: Callable[[Sequence[ApprovalRequest]], Sequence[Decision | None]]
    rounds: list[list[ApprovalRequest]] = field(default_factory=list)
    confirms_edits = True

    async def decide(self, request):
        return (await self.decide_all([request]))[0]

    async def decide_all(self, requests):
        self.rounds.append(list(requests))
        return self.answer(requests)


def doubles(*numbers):
    return [call("double", f"c{number}", number=number) for number in numbers]


def test_all_calls_that_need_it_are_asked_about_together():
    together = Together(lambda asked: [Decision.allow(), Decision.deny("not three")])
    policy = Policy((Rule("allow", arguments={"number": "2"}),), "ask")
    results = answers([double], doubles(1, 2, 3), policy=policy, approver=together)
    assert [result.text for result in results] == ["2", "4", "error: denied: not three"]
    assert [[request.call.id for request in one] for one in together.rounds] == [["c1", "c3"]]


def test_one_call_alone_is_asked_about_alone():
    class Alone(Together):
        async def decide(self, request):
            return Decision.allow("alone")

    assert answers([double], doubles(1), policy=ASK, approver=Alone(lambda _: []))[0].text == "2"


def test_calls_may_be_decided_one_after_the_other():
    together = Together(lambda asked: [*[None] * (len(asked) - 1), Decision.allow()])
    results = answers([double], doubles(1, 2, 3), policy=ASK, approver=together)
    assert [result.text for result in results] == ["2", "4", "6"]
    assert [len(one) for one in together.rounds] == [3, 2, 1]


def test_an_always_to_one_answers_the_others_that_it_covers():
    @tool
    async def other() -> str:
        """Do something else."""
        return "done"

    together = Together(lambda asked: [Decision.always(), *[None] * (len(asked) - 1)])
    calls = [call("double", "a", number=1), call("other", "b"), call("double", "c", number=3)]
    results = answers([double, other], calls, policy=ASK, approver=together)
    assert [result.text for result in results] == ["2", "done", "6"]
    assert [[request.call.id for request in one] for one in together.rounds] == [["a", "b", "c"], ["b"]]


def test_an_edit_of_one_is_shown_again_with_the_rest():
    def decide(asked):
        if asked[0].is_edited:
            assert asked[0].arguments == {"number": 10}
            return [Decision.allow(), Decision.allow()]
        return [Decision.edit({"number": 10}), None]

    together = Together(decide)
    results = answers([double], doubles(1, 2), policy=ASK, approver=together)
    assert [result.text for result in results] == [
        "20\n[the user changed the arguments before the call was run; number: 1 → 10]",
        "4",
    ]


@pytest.mark.parametrize("decided", [[], [None, None], [Decision.allow()], [None] * 3])
def test_decisions_that_do_not_fit_the_calls_run_nothing(decided):
    with pytest.raises(PolicyError, match=r"Together\.decide_all must return a Decision or None for each of the 2"):
        answers([double], doubles(1, 2), policy=ASK, approver=Together(lambda _: decided))


def test_an_edit_is_confirmed_only_by_an_approver_that_shows_it():
    shown = []

    def decide(asked):
        shown.append((asked[0].is_edited, asked[0].arguments["number"]))
        return [Decision.allow() if asked[0].is_edited else Decision.edit({"number": 10})]

    result = answer(double, call("double", number=1), policy=ASK, approver=Together(decide))
    assert result.text.startswith("20\n")
    assert shown == [(False, 1), (True, 10)]


def test_an_edit_to_what_it_was_is_no_edit():
    class Unshown:
        async def decide(self, _request):
            return Decision.edit({"number": 1})

    assert answer(double, call("double", number=1), policy=ASK, approver=Unshown()).text == "2"


def test_a_person_whose_edit_the_policy_denies_is_told_and_asked_again():
    def decide(asked):
        return [Decision.allow() if asked[0].problem else Decision.edit({"number": 10})]

    policy = Policy((Rule("deny", arguments={"number": "10"}, reason="ten is taken"),), "ask")
    together = Together(decide)
    assert answer(double, call("double", number=1), policy=policy, approver=together).text == "2"
    assert together.rounds[1][0].problem == "the policy denies this: ten is taken"


def test_a_comment_reaches_the_model_with_the_result():
    class Comments:
        async def decide(self, _request):
            return Decision.allow("me", "but not in production")

    assert answer(double, call("double", number=1), policy=ASK, approver=Comments()).text == (
        "2\n[the user allowed this call and says: but not in production]"
    )


def make_editor(folder: Path, log: list[str] | None = None, precondition: bool = True):
    """A tool that replaces a text in a file, and shows the change first."""

    def preview(arguments):
        path = folder / arguments["path"]
        before = path.read_text() if path.exists() else ""
        state = hashlib.sha256(before.encode()).hexdigest() if precondition else None
        after = before.replace(arguments["old"], arguments["new"]) if arguments["old"] else arguments["new"]
        return Intent((Effect("write", str(path)),), Diff(str(path), before, after), state)

    @tool(intent=preview)
    async def edit(path: str, old: str, new: str) -> str:
        """Replace a text; an empty one stands for the whole file."""
        if log is not None:
            log.append(f"{new} begins")
        await asyncio.sleep(0.02)
        file = folder / path
        before = file.read_text() if file.exists() else ""
        file.write_text(before.replace(old, new) if old else new)
        if log is not None:
            log.append(f"{new} ends")
        return "edited"

    return edit


TEN = "".join(f"line {number}\n" for number in range(20))


def test_two_edits_of_one_file_that_do_not_touch_are_asked_about_once_each(tmp_path):
    (tmp_path / "a").write_text(TEN)
    together = Together(lambda asked: [Decision.allow() for _ in asked])
    calls = [
        call("edit", "c1", path="a", old="line 2\n", new="two\nand more\n"),
        call("edit", "c2", path="a", old="line 17\n", new="seventeen\n"),
    ]
    results = answers([make_editor(tmp_path)], calls, policy=ASK, approver=together)
    assert [result.text for result in results] == ["edited", "edited"]
    assert (tmp_path / "a").read_text() == TEN.replace("line 2\n", "two\nand more\n").replace(
        "line 17\n", "seventeen\n"
    )
    assert [len(one) for one in together.rounds] == [2]


@pytest.mark.parametrize("precondition", [True, False])
def test_a_second_change_of_a_file_is_shown_again_when_it_has_become_another(tmp_path, precondition):
    (tmp_path / "a").write_text("one\n")

    def decide(asked):
        if asked[0].is_changed:
            return [Decision.deny("keep the first")]
        return [Decision.allow() for _ in asked]

    together = Together(decide)
    calls = [
        call("edit", "c1", path="a", old="one", new="first"),
        call("edit", "c2", path="a", old="", new="second\n"),
    ]
    editor = make_editor(tmp_path, precondition=precondition)
    with FileJournal(tmp_path / "journal") as journal:
        results = answers([editor], calls, policy=ASK, approver=together, journal=journal)
    refused = read_entries(tmp_path / "journal")[-1]
    assert (refused["event"], refused["decision"], refused["reason"]) == ("refused", "deny", "keep the first")
    assert [result.text for result in results] == ["edited", "error: denied: keep the first"]
    assert (tmp_path / "a").read_text() == "first\n"
    assert together.rounds[1][0].intent.preview == Diff(str(tmp_path / "a"), "first\n", "second\n")


def test_a_change_that_an_earlier_one_has_made_impossible_says_why(tmp_path):
    (tmp_path / "a").write_text("one\n")

    def preview(arguments):
        text = (tmp_path / "a").read_text()
        if arguments["old"] not in text:
            raise ToolRetry(f"{arguments['old']!r} is not in the file")
        return Intent(
            (Effect("write", str(tmp_path / "a")),),
            Diff("a", text, text.replace(arguments["old"], arguments["new"])),
            text,
        )

    @tool(intent=lambda arguments: preview({"old": arguments["old"], "new": arguments["new"]}))
    async def swap(old: str, new: str) -> str:
        """Replace a text."""
        (tmp_path / "a").write_text((tmp_path / "a").read_text().replace(old, new))
        return "swapped"

    together = Together(lambda asked: [Decision.allow() for _ in asked])
    calls = [call("swap", "c1", old="one", new="two"), call("swap", "c2", old="one", new="three")]
    results = answers([swap], calls, policy=ASK, approver=together)
    assert [(one.status, one.text) for one in results] == [
        ("ok", "swapped"),
        ("retry", "error: 'one' is not in the file"),
    ]
    assert (tmp_path / "a").read_text() == "two\n"


def test_where_all_is_allowed_a_changed_call_runs(tmp_path):
    (tmp_path / "a").write_text("one\n")
    calls = [
        call("edit", "c1", path="a", old="one", new="first"),
        call("edit", "c2", path="a", old="", new="second\n"),
    ]
    results = answers([make_editor(tmp_path)], calls, policy=ASK, approver=AllowAll())
    assert [result.text for result in results] == ["edited", "edited"]
    assert (tmp_path / "a").read_text() == "second\n"


@pytest.mark.parametrize("target", ["", "a\0b", "a\ud800b", "https://a.example/b"])
def test_targets_that_are_no_paths_are_no_trouble(target):
    @tool(intent=lambda _: Intent((Effect("write", target),)))
    async def act() -> str:
        """Act."""
        return "done"

    assert [one.text for one in answers([act], [call("act", "a"), call("act", "b")])] == ["done", "done"]


def test_a_change_from_elsewhere_is_refused_as_before(tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("one\n")

    def decide(asked):
        (tmp_path / "b").write_text("somebody else's one\n")
        return [Decision.allow() for _ in asked]

    calls = [call("edit", "c1", path="a", old="one", new="1"), call("edit", "c2", path="b", old="one", new="2")]
    results = answers([make_editor(tmp_path)], calls, policy=ASK, approver=Together(decide))
    assert results[1].text.startswith("error: denied: what the call would do has changed since it was approved")
    assert (tmp_path / "b").read_text() == "somebody else's one\n"


def test_calls_that_use_what_another_writes_wait_for_it(tmp_path):
    log: list[str] = []
    editor = make_editor(tmp_path, log)

    @tool(intent=lambda arguments: Intent((Effect("read", str(tmp_path)),)))
    async def look() -> str:
        """Look at the folder."""
        log.append("look")
        return "seen"

    calls = [
        call("edit", "c1", path="a", old="", new="1"),
        call("edit", "c2", path="b", old="", new="2"),
        call("look", "c3"),
        call("look", "c4"),
        call("edit", "c5", path="c", old="", new="3"),
    ]
    answers([editor, look], calls)
    assert log == ["1 begins", "2 begins", "1 ends", "2 ends", "look", "look", "3 begins", "3 ends"]


def test_an_answer_that_can_not_be_saved_is_asked_for_again():
    def fail(_always):
        raise OSError("no space left on device")

    def decide(asked):
        return [Decision.always(scope="session" if asked[0].problem else "project")]

    together = Together(decide)
    policy = Policy(profile="ask", grants=SessionGrants(save=fail))
    results = answers([double], [call("double", number=1)], policy=policy, approver=together)
    assert results[0].text == "2"
    assert together.rounds[0][0].can_save
    assert together.rounds[0][0].always_rules == ('{ action = "allow", tool = "double" }',)
    assert together.rounds[1][0].problem == (
        "this answer can't be saved, and may be given for the session only: no space left on device"
    )


def test_an_answer_for_the_project_needs_a_place_to_save_it():
    together = Together(lambda _: [Decision.always(scope="project")])
    with pytest.raises(PolicyError, match="can only be given where the policy has grants with `save`"):
        answer(double, call("double", number=1), policy=ASK, approver=together)
    with pytest.raises(PolicyError, match="the scope of a decision must be session or project"):
        Decision.always(scope="forever")


def test_requests_and_decisions_are_kept_as_json_with_everything():
    request = ApprovalRequest(
        call("double", number=1), "double", {"number": 1}, None, "asked", "every call", "0", is_edited=True,
        agent="helper", workspace="/ws", always_rules=("{ }",), can_save=True, added_folders=("/added",),
    )  # fmt: skip
    pending = Pending(request.call, "asked", request)
    assert pending_from_json(json.loads(json.dumps(pending_to_json(pending)))) == pending
    decision = pending.decide(Decision.always("me", "project"))
    assert decision_from_json(json.loads(json.dumps(decision_to_json(decision)))) == decision
    comment = Decision.allow("me", "but slowly")
    assert decision_from_json(json.loads(json.dumps(decision_to_json(comment)))) == comment
