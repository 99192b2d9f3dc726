"""Command templates as tools: a value is one argument, never an option or shell code; templates are checked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ferrule import Policy, Rule, ToolResult
from ferrule.builtin_tools.command_templates import CommandTool, make_command_tool
from ferrule.errors import ToolDefinitionError, ToolRetry
from ferrule.execution.executor import call_tool
from ferrule.sandbox.shell import ShellSandbox
from tables import each_case


def make(*command: str, **parameters: dict[str, Any]) -> CommandTool:
    return CommandTool.model_validate(
        {"name": "show", "description": "Show.", "command": command, "parameters": parameters}
    )


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[ShellSandbox]:
    async with ShellSandbox(tmp_path) as opened:
        yield opened


async def run(settings: CommandTool, sandbox: ShellSandbox, policy: Policy | None = None, **values: Any) -> ToolResult:
    tool = make_command_tool(settings, lambda: sandbox)
    return await call_tool(tool, values, policy=policy or Policy(profile="all"))


HOSTILE = [
    "; touch pwned #",
    "$(touch pwned)",
    "`touch pwned`",
    "a && touch pwned",
    "| tee pwned",
    "> pwned",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "\n touch pwned \n",
    "*",
    "~",
    "$HOME",
    "\\",
    "!!",
    "{a,b}",
    "\x1b[31m",
]


@pytest.mark.parametrize("value", HOSTILE)
async def test_no_shell_interprets_a_value(sandbox: ShellSandbox, tmp_path: Path, value: str) -> None:
    settings = make("python3", "-c", "import sys; print(ascii(sys.argv[1:]))", "{value}", value={})
    assert (await run(settings, sandbox, value=value)).text == ascii([value])
    assert not (tmp_path / "pwned").exists()


@given(value=st.text())
def test_a_value_is_one_argument_or_is_refused(value: str) -> None:
    settings = make("show", "{value}", "x{value}", value={})
    try:
        assert settings.make_arguments({"value": value}) == ["show", value, f"x{value}"]
    except ToolRetry:
        assert value.startswith("-") or "\0" in value


@pytest.mark.parametrize("command", [("{a}{b}",), ("{b}",), ("{a}-x",)])
def test_a_value_at_the_beginning_of_an_argument_is_no_option(command: tuple[str, ...]) -> None:
    settings = make("git", "log", *command, **{name: {} for name in "ab" if f"{{{name}}}" in command[0]})
    with pytest.raises(ToolRetry, match="begins with '-', which git would take as an option"):
        settings.make_arguments({"a": "", "b": "--output=x"})


def test_after_two_dashes_everything_is_a_value() -> None:
    settings = make("git", "log", "--", "{path}", path={})
    assert settings.make_arguments({"path": "-x"}) == ["git", "log", "--", "-x"]
    assert make("grep", "--regexp={word}", word={}).make_arguments({"word": "-x"})[1] == "--regexp=-x"


def test_two_dashes_from_the_model_end_no_options() -> None:
    settings = make("git", "log", "{first}", "{second}", first={}, second={})
    with pytest.raises(ToolRetry, match="'--' begins with '-'"):
        settings.make_arguments({"first": "--", "second": "-x"})


def test_what_is_left_out_takes_its_argument_with_it() -> None:
    settings = make(
        "pytest", "-k", "{words}", "{path}", words={"default": "fast"}, path={"optional": True, "pattern": r"[\w/]+"}
    )
    assert settings.make_arguments({}) == ["pytest", "-k", "fast"]
    assert settings.make_arguments({"words": "slow", "path": "tests"}) == ["pytest", "-k", "slow", "tests"]


def test_numbers_and_booleans_are_written_as_in_json() -> None:
    settings = make("show", "{a}", "{b}", "{c}", a={"type": "integer"}, b={"type": "boolean"}, c={"type": "number"})
    assert settings.make_arguments({"a": 3, "b": True, "c": 0.5}) == ["show", "3", "true", "0.5"]


async def test_rules_of_the_schema_hold(sandbox: ShellSandbox) -> None:
    settings = make("echo", "{word}", "{count}", word={"pattern": "a|b"}, count={"type": "integer", "maximum": 3})
    assert (await run(settings, sandbox, word="a", count=3)).text == "a 3"
    for word, count in (("ab", 1), ("a\n", 1), ("c", 1), ("a", 4)):
        assert (await run(settings, sandbox, word=word, count=count)).status == "invalid"
    chosen = make("echo", "{word}", word={"enum": ["x", "y"]})
    assert (await run(chosen, sandbox, word="z")).status == "invalid"


async def test_a_failing_command_is_an_error_with_its_output(sandbox: ShellSandbox) -> None:
    result = await run(make("python3", "-c", "import sys; print('out'); sys.exit(3)"), sandbox)
    assert result.is_error
    assert "exit status 3" in result.text
    assert "out" in result.text


async def test_a_slow_command_is_stopped(sandbox: ShellSandbox) -> None:
    settings = make("sleep", "60").model_copy(update={"timeout": 0.3})
    assert "timed out and was stopped" in (await run(settings, sandbox)).text


async def test_one_that_only_reads_cannot_write(sandbox: ShellSandbox, tmp_path: Path) -> None:
    settings = make("touch", "made").model_copy(update={"read_only": True})
    assert (await run(settings, sandbox)).is_error
    assert not (tmp_path / "made").exists()
    assert not (await run(make("touch", "made"), sandbox)).is_error
    assert (tmp_path / "made").exists()


async def test_a_person_sees_the_command(sandbox: ShellSandbox) -> None:
    tool = make_command_tool(make("npm", "run", "{script}", script={}), lambda: sandbox)
    assert tool.intent is not None
    intent = tool.intent({"script": "a b"})
    assert str(intent.preview).startswith("$ npm run 'a b'\n[in ")
    assert {(one.kind, one.words) for one in intent.effects} == {
        ("run", ("npm", "run", "a b")),
        ("write", ("npm", "run", "a b")),
    }


async def test_rules_see_it_as_a_tool_that_writes(sandbox: ShellSandbox) -> None:
    result = await run(make("touch", "made"), sandbox, Policy(profile="plan"))
    assert result.status == "denied"
    denied = await run(make("touch", "made"), sandbox, Policy((Rule("deny", effect="write"),), profile="all"))
    assert denied.status == "denied"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"command": []}, "command"),
    ({"command": ["{program}"], "parameters": {"program": {}}}, "can't come from the model"),
    ({"command": ["echo", "{word}"]}, r"the command has \{word\}, and there is no parameter 'word'"),
    ({"command": ["echo"], "parameters": {"word": {}}}, r"the command lacks \{word\}"),
    ({"command": ["echo", "{word"], "parameters": {"word": {}}}, "for braces"),
    ({"command": ["echo", "{word!r}"], "parameters": {"word": {}}}, r"only \{name\} is replaced"),
    ({"command": ["echo", "{}"]}, r"only \{name\} is replaced"),
    ({"command": ["sh", "-c", "wc {word}"], "parameters": {"word": {}}}, "a value inside a shell script"),
    ({"command": ["env", "X=1", "/bin/bash", "-lc", "{w}"], "parameters": {"w": {}}}, "a value inside a shell script"),
    ({"command": ["echo", "{w}"], "parameters": {"w": {"type": "list"}}}, "type"),
    ({"command": ["echo", "{w}"], "parameters": {"w": {"enum": []}}}, "enum"),
    ({"command": ["echo", "{w}"], "parameters": {"w": {"enum": ["a", 1]}}}, "1 is not of the type string"),
    ({"command": ["echo", "{w}"], "parameters": {"w": {"type": "integer", "default": True}}}, "True is not of the"),
    ({"command": ["echo", "{w}"], "parameters": {"w": {"type": "integer", "pattern": "1"}}}, "a pattern is for"),
    ({"command": ["echo", "{w}"], "parameters": {"w": {"minimum": 1}}}, "minimum and maximum are for numbers"),
    ({"command": ["echo", "{w}"], "parameters": {"w": {"optional": True, "default": "x"}}}, "optional already"),
    ({"command": ["echo"], "shell": True}, "shell"),
    ({"command": ["echo"], "timeout": 0}, "timeout"),
    ({"command": ["echo"], "description": ""}, "description"),
]


@each_case(("changed", "problem"), WRONG)
def test_a_wrong_template_is_refused_with_the_place(changed: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        CommandTool.model_validate({"name": "show", "description": "Show.", **changed})


@pytest.mark.parametrize(("pattern", "problem"), [("(", "pattern"), ("(?=a)b", "pattern"), (r"(a)\1", "pattern")])
async def test_a_pattern_that_cannot_be_checked_is_refused(sandbox: ShellSandbox, pattern: str, problem: str) -> None:
    with pytest.raises(ToolDefinitionError, match=problem):
        make_command_tool(make("echo", "{w}", w={"pattern": pattern}), lambda: sandbox)


def test_a_name_that_no_model_can_be_offered_is_refused(tmp_path: Path) -> None:
    settings = make("echo").model_copy(update={"name": "run it"})
    with pytest.raises(ToolDefinitionError, match="'run it'"):
        make_command_tool(settings, lambda: ShellSandbox(tmp_path))
