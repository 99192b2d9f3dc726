"""The terminal approver, at a real terminal and through real pipes."""

from __future__ import annotations

import asyncio
import io
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running_tools import answer, answers, call

from ferrule._util.terminal_text import escape_line
from ferrule.conversation import ToolCall
from ferrule.execution import Decision, Policy, Rule
from ferrule.execution.decisions import (
    ApprovalRequest,
    Pending,
    hash_request,
    pending_from_json,
    pending_to_json,
)
from ferrule.session.terminal.approver import TerminalApprover
from ferrule.session.terminal.call_display import CallDisplay
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.intent import Effect, Intent
from tables import each_case

ASK = Policy(profile="ask")


@tool
async def write(path: str, text: str = "") -> str:
    """Write a file."""
    return f"{path} {text}"


def asked(typed, **arguments):
    """What comes of a call where somebody types this, and what they saw."""
    output = io.StringIO()
    approver = TerminalApprover(io.StringIO(typed), output)
    result = answer(write, call("write", **arguments), policy=ASK, approver=approver)
    return result, output.getvalue()


def test_a_call_is_shown_and_answered():
    result, shown = asked("y\n", path="a.txt", text="one\ntwo\n")
    assert result.text == "a.txt one\ntwo\n"
    assert shown == (
        "▸ write asks to run\n"
        '  path: "a.txt"\n'
        "  text:\n"
        "  │ one\n"
        "  │ two\n"
        "  why you are asked: the profile ask asks before write, which isn't known to be read-only\n"
        "[y]es, [n]o REASON, [e]dit, [a]lways this session (every call of write)? "
    )


@each_case(
    ("typed", "text"),
    [
        ("YES\n", "a "),
        ("n\n", "error: denied: the user said no"),
        ("no  use b instead \n", "error: denied: use b instead"),
        ("", "error: denied: nobody answered"),
        ("what?\n\ny\n", "a "),
        ("e\n" + '{"path": "b"}\ny\n', 'b \n[the user changed the arguments before the call was run; path: "a" → "b"]'),
        ('edit {"path": "b"}\ny\n', 'b \n[the user changed the arguments before the call was run; path: "a" → "b"]'),
        ('e {"path": "b"}\nn not b either\n', "error: denied: not b either"),
        ('e {"path": "b"}\n', "error: denied: nobody answered"),
        ("e\nnot json\ny\n", "a "),
        ("e\n[1]\ny\n", "a "),
        ('e {"path": 5}\ny\n', "a "),
        ("e\n", "error: denied: nobody answered"),
        ("a\n", "a "),
    ],
)
def test_answers(typed, text):
    assert asked(typed, path="a")[0].text == text


def test_a_wrong_edit_says_what_is_wrong():
    _, shown = asked('e {"path": 5}\ny\n', path="a")
    assert "  │ not accepted: " in shown
    assert "path: " in shown.partition("not accepted")[2]


def test_always_is_offered_only_where_it_helps():
    output = io.StringIO()
    approver = TerminalApprover(io.StringIO("a\nn\n"), output)
    result = answer(write, call("write", path="a"), policy=Policy((Rule("ask"),)), approver=approver)
    assert result.status == "denied"
    assert "always" not in output.getvalue()


def render_call(request, width=200):
    return [line.text for line in CallDisplay(width).render(request)]


def render_request(request, width=200):
    display = CallDisplay(width)
    shown = [*display.render(request), *display.render_reason(request), *display.render_details(request)]
    return [line.text for line in [*shown, *display.summarize(request, "  1")]]


def request(arguments, intent=None, always=None, **more):
    return ApprovalRequest(ToolCall("c", "write", "{}"), "write", arguments, intent, "asked", always, "0", **more)


HIDDEN = "\x1b[2J\r\x07\u202e\u2066\u200b\u200d\ufeff\u00ad\u2028\x85\U000e0041\u3164\ufe0f\u00a0"


def test_nothing_hides_or_moves_the_cursor():
    intent = Intent((Effect("run", f"ls {HIDDEN}"),), f"$ ls {HIDDEN}\n[y]es, [n]o?")
    for line in render_request(request({f"na{HIDDEN}me": f"va{HIDDEN}lue", "more": f"a\n{HIDDEN}"}, intent)):
        assert not set(line) & set(HIDDEN) - set("[2J")
        assert line.isprintable()
    assert escape_line("\u202e") == "\\u202e"
    assert escape_line("grün 猫 🐈 é") == "grün 猫 🐈 é"


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=5), st.text(max_size=60), max_size=3))
def test_whatever_the_call_holds_each_line_is_one_printable_line(preview, arguments):
    for line in render_call(request(arguments, Intent((Effect("write", preview),), preview))):
        assert line.isprintable()
        assert line.startswith(("▸ ", "  "))


def test_all_of_something_long_is_shown_page_by_page():
    lines = [f"line {number}" for number in range(90)]
    output = io.StringIO()
    approver = TerminalApprover(io.StringIO("m\nMORE\nm\ny\n"), output)
    long = request({"text": "\n".join(lines), "more": "begin" + "x" * 1_000 + "end"}, Intent(preview="$ rm -rf"))
    assert asyncio.run(approver.decide(long)).action == "allow"
    first, second, third, after, last = output.getvalue().split("[y]es, ")
    assert first.index("│ $ rm -rf") < first.index("line 36") < first.index("why you are asked")
    assert "line 37" not in first
    assert first.endswith("60 lines not shown yet: [v]iew all, [m]ore; ")
    assert second.startswith("[n]o REASON, [e]dit? ")
    assert "line 76" in second
    assert second.endswith("20 lines not shown yet: [v]iew all, [m]ore; ")
    assert third.endswith('xend"\n')
    assert after == "[n]o REASON, [e]dit? please answer with one of the letters; ? explains them\n"
    assert last == "[n]o REASON, [e]dit? "
    whole = output.getvalue().replace("\n  │ ", "")
    assert all(f"line {number}" in whole for number in range(90))
    assert f"begin{'x' * 1_000}end" in whole


@each_case("answer", ["y", "yes go on", "Y,", "a", "p"])
@each_case("look", ["m", "v"])
def test_a_yes_does_not_count_before_all_was_shown(answer: str, look: str):
    output = io.StringIO()
    approver = TerminalApprover(io.StringIO(f"{answer}\n{look}\n{answer}\n"), output)
    long = request({"text": "\n".join(f"line {number}" for number in range(50))}, always="text", can_save=True)
    assert asyncio.run(approver.decide(long)).action in ("allow", "always")
    first, second = output.getvalue().split("not run yet: ")
    assert "line 49" not in first
    assert "lines of it were not shown; v shows all of it, m the next page, and y! runs it without a look" in second
    assert "line 49" in second
    again = TerminalApprover(io.StringIO(f"{answer}\n"), io.StringIO())
    again._seen = approver._seen  # the same approver, asked about the same call
    assert asyncio.run(again.decide(long)).action in ("allow", "always")


def test_a_yes_to_what_was_not_shown_is_possible_and_one_of_several_lines_is_none():
    long = request({"text": "line\n" * 50})
    assert asyncio.run(TerminalApprover(io.StringIO("y! do\n"), io.StringIO()).decide(long)).comment == "do"
    short, output = request({"text": "a"}), io.StringIO()
    approver = TerminalApprover(io.StringIO(""), output)
    assert asyncio.run(approver.parse_answer("y\nrm -rf", short)) is None
    assert "may have been pasted" in output.getvalue()
    assert asyncio.run(approver.parse_answer("n not\nlike this", short)).reason == "not\nlike this"


def test_what_a_call_would_do_stands_before_its_arguments():
    shown = render_call(request({"text": "a\n" * 500}, Intent((Effect("run", "rm -rf build"),))))
    assert shown[:3] == ["▸ write asks to run", "  runs rm -rf build", "  text:"]


def test_a_withdrawn_question_leaves_the_next_one_its_answer():
    reading, writing = os.pipe()
    output = io.StringIO()

    async def run(source):
        approver = TerminalApprover(source, output)
        first = asyncio.create_task(approver.decide(request({"a": 1})))
        await asyncio.sleep(0.05)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.create_task(approver.decide(request({"b": 2})))
        await asyncio.sleep(0.05)
        os.write(writing, b"y\n")
        assert (await second).action == "allow"
        third = asyncio.create_task(approver.decide(request({"c": 3})))
        await asyncio.sleep(0.05)
        third.cancel()
        os.write(writing, b"y\n")
        await asyncio.sleep(0.1)
        # That yes was for the third question.
        fourth = asyncio.create_task(approver.decide(request({"d": 4})))
        await asyncio.sleep(0.05)
        os.write(writing, b"n stop\n")
        return await fourth

    with os.fdopen(reading, "r") as source:
        decision = asyncio.run(run(source))
    os.close(writing)
    assert decision == Decision.deny("stop", "terminal")


def test_questions_come_one_at_a_time():
    output = io.StringIO()

    async def run():
        approver = TerminalApprover(io.StringIO("y\nn\n"), output)
        return await asyncio.gather(approver.decide(request({"a": 1})), approver.decide(request({"b": 2})))

    assert [decision.action for decision in asyncio.run(run())] == ["allow", "deny"]
    shown = output.getvalue()
    assert shown.index("a: 1") < shown.index("[y]es") < shown.index("b: 2")


def test_a_read_that_is_withdrawn_while_the_next_question_waits_answers_nothing():
    class Withdrawn(io.StringIO):
        """The end of the input for the first reader, once it is let go, and lines for the next."""

        def __init__(self):
            super().__init__("y\n")
            self.let_go = threading.Event()
            self.reads = 0

        def readline(self, *_):
            self.reads += 1
            if self.reads == 1:
                self.let_go.wait()
                return ""
            return super().readline()

    stream = Withdrawn()
    approver = TerminalApprover(stream, io.StringIO())
    request = ApprovalRequest(call("write"), "write", {}, None, "because", None, "")

    async def ask_twice():
        first = asyncio.create_task(approver.decide(request))
        while stream.reads == 0:
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        second = asyncio.create_task(approver.decide(request))
        await asyncio.sleep(0)
        stream.let_go.set()
        return await second

    assert asyncio.run(ask_twice()).action == "allow"


@pytest.mark.parametrize(
    ("typed", "said"),
    [("[1]", "not a JSON object"), ("{", "not valid JSON: "), ('{"a":' * 100_000, "nested too deeply")],
)
def test_arguments_typed_on_one_line_that_are_none_change_nothing(typed: str, said: str):
    output = io.StringIO()
    approver = TerminalApprover(io.StringIO(f"e {typed}\nn\n"), output)
    assert asyncio.run(approver.decide(request({"text": "a"}))).action == "deny"
    assert f"not changed: {said}" in output.getvalue() or f"not valid JSON: {said}" in output.getvalue()


@tool
async def set_light(room: str, on: bool = True, brightness: int | None = None) -> str:
    """Switch a light."""
    return f"{room} {on} {brightness}"


def asked_about_light(typed: str, *rooms: str):
    output = io.StringIO()
    calls = [call("set_light", room=room) for room in rooms]
    approver = TerminalApprover(io.StringIO(typed), output)
    results = answers([set_light], calls, policy=ASK, approver=approver)
    return [result.text for result in results], output.getvalue()


def test_defaults_that_the_call_would_run_with_are_shown():
    results, shown = asked_about_light("d\ny\n", "bedroom")
    assert results == ["bedroom True None"]
    assert shown.count('  room: "bedroom"\n  on: true (default)\n') == 2
    assert "brightness" not in shown
    _, shown = asked_about_light("y\n", "bedroom", "kitchen")
    assert '  1  set_light  room="bedroom"  on=true (default)\n' in shown


def test_a_default_is_shown_only_where_the_schema_has_one():
    properties = {"room": {"type": "string"}, "on": {"type": "boolean", "default": False}, "any": True, "more": {}}
    server = Tool.from_schema("switch", "", {"properties": properties}, lambda **_: "done")
    output = io.StringIO()
    approver = TerminalApprover(io.StringIO("y\n"), output)
    assert answer(server, call("switch"), policy=ASK, approver=approver).text == "done"
    assert output.getvalue().startswith("▸ switch asks to run\n  on: false (default)\n  why you are asked")


def test_a_decision_holds_for_the_defaults_that_were_shown():
    shown = pending_to_json(Pending(call("write"), "asked", request({}, defaults={"on": True})))
    assert pending_from_json(shown).request.defaults == {"on": True}
    assert hash_request("switch", {}, {"on": True}, None) != hash_request("switch", {}, {"on": False}, None)


def test_arguments_typed_in_place_of_all_name_those_that_they_leave_out():
    results, shown = asked_about_light('e {"brightness": 20}\ne {"room": "hall", "brightness": 20}\ny\n', "bedroom")
    assert results[0].startswith("hall True 20\n")
    assert "e {…} replaces all arguments, and this leaves out: room\n" in shown
    assert shown.count("leaves out") == 1


@pytest.mark.parametrize(
    ("options", "left_out"),
    [
        ({}, {"a", "a?", "p", "m", "b"}),
        ({"always": "every call of write"}, {"p", "m", "b"}),
        ({"always": "every call of write", "can_save": True}, {"m", "b"}),
        ({"is_running": True}, {"e", "a", "a?", "p", "m", "b"}),
    ],
)
def test_help_lists_only_what_is_accepted(options, left_out):
    output = io.StringIO()
    asyncio.run(TerminalApprover(io.StringIO("?\nn\n"), output).decide(request({"path": "a"}, **options)))
    listed = {line.split()[0] for line in output.getvalue().splitlines() if line.startswith("  ")}
    every = {"y", "y!", "n", "e", "a", "p", "a?", "d", "m", "v", "b"}
    assert every - listed == left_out
