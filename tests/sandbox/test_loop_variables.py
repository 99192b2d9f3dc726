"""The variable of a loop: judged as what it stands for where that is certain, else as any path."""

from __future__ import annotations

import pytest

from ferrule.execution.always import derive_always
from ferrule.sandbox.shell.command_line import parse_command_line
from ferrule.tools.intent import Intent
from ferrule.toolspec import ToolSpec
from tables import each_case

WORKSPACE = "/nowhere/workspace"
KNOWN = {
    "for f in a.txt b.txt; do cat $f; done": {"a.txt", "b.txt"},
    'for f in a.txt b.txt; do cat "$f"; done': {"a.txt", "b.txt"},
    'for f in src/a "b"; do head -n 3 "${f}"; done': {"src/a", "b"},
    "for f in a b; do for g in c d; do diff $f $g; done; done": {"a", "b", "c", "d"},
    'for f in src/*; do cat "$f"; done': {"src"},
    "for f in a; do echo $(cat $f); done": {"a", ""},
}
UNKNOWN = [
    "for f in *; do cat $f; done",  # a name may have blanks, and a part of it be `..`
    "for f in */*; do cat $f; done",
    "for f in 'a /etc/passwd'; do cat $f; done",
    "for f in a; do f=/etc/passwd; cat $f; done",
    "for f in a; do read f; cat $f; done",
    "for f in a; do for f in $(ls /); do cat $f; done; done",
    "for f in a; do . ./set.sh; cat $f; done",
    "for f in a; do eval f'='/etc; cat $f; done",
    "for f in a; do cat ../$f; done",
    "for f in $(find .); do cat $f; done",
    "for f in $g; do cat $f; done",
    "for f; do cat $f; done",
    "for f in a; do true; done; cat $f",
    "for f in a; do sh -c 'cat $f'; done",
    "cat $f",
]


@pytest.mark.parametrize("command", KNOWN)
def test_certain_values_are_judged(command: str) -> None:
    line = parse_command_line(command, WORKSPACE)
    assert line.problem is None
    assert line.only_reads
    targets = {effect.target for effect in line.effects}
    assert targets - {WORKSPACE} == {f"{WORKSPACE}/{name}" for name in KNOWN[command] if name}


@pytest.mark.parametrize("outside", ["/etc/passwd", "../x", "~/x"])
def test_a_value_that_leads_outside_is_judged_as_that(outside: str) -> None:
    line = parse_command_line(f"for f in a {outside}; do cat $f; done", WORKSPACE)
    assert any(not effect.target.startswith(f"{WORKSPACE}/a") for effect in line.effects)


def test_a_written_value_is_judged() -> None:
    effects = parse_command_line("for f in a /etc/b; do touch $f; done", WORKSPACE).effects
    assert {effect.target for effect in effects if effect.kind == "write"} == {f"{WORKSPACE}/a", "/etc/b"}


def test_a_value_may_be_an_option() -> None:
    effects = parse_command_line("for f in -delete; do find . $f; done", WORKSPACE).effects
    assert any(effect.kind == "write" for effect in effects)


@each_case("command", UNKNOWN)
def test_what_is_not_certain_may_be_any_path_and_has_no_always(command: str) -> None:
    line = parse_command_line(command, WORKSPACE)
    assert line.problem is not None or "/" in {effect.target for effect in line.effects}
    assert derive_always(ToolSpec("bash", "", {}), Intent(line.effects), trusted=True) is None
