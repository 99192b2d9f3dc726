""" "Always" answers kept for a workspace."""

from __future__ import annotations

import json
import stat

import pytest

from ferrule.errors import SettingsError
from ferrule.execution import Policy, Rule, SessionGrants
from ferrule.execution.always import derive_always
from ferrule.session.saved_rules import list_saved, load_saved_rules, remove_saved, save_always
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.intent import Effect, Intent
from ferrule.toolspec import ToolSpec

BASH = ToolSpec("bash", "", {})


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "ferrule" / "always.json"


def runs(command):
    return Intent((Effect("run", command, tuple(command.split())),))


def answer(command):
    return derive_always(BASH, runs(command), trusted=True)


def test_what_was_allowed_is_allowed_at_the_next_start(tmp_path, file):
    grants = SessionGrants()
    policy = Policy(profile="ask", grants=grants).with_always(answer("npm test")).with_always(answer("make"))
    policy.with_always(answer("make"))
    assert [one.scope for one in grants.answers] == ["bash: npm test … (runs)", "bash: make (runs)"]
    save_always(tmp_path / "a", grants.answers)
    save_always(tmp_path / "a", grants.answers)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    saved = list_saved(tmp_path / "a")
    assert [one.scope for one in saved] == ["bash: npm test … (runs)", "bash: make (runs)"]
    later = Policy(profile="ask", grants=SessionGrants(load_saved_rules(tmp_path / "a")))
    assert later.judge(BASH, {}, runs("npm test -- -u")).action == "allow"
    assert later.judge(BASH, {}, runs("make install")).action == "ask"
    assert later.judge(BASH, {}, runs("make")).rule.source == str(file)
    assert load_saved_rules(tmp_path / "b") == ()


def test_saved_answers_are_removed_by_number_or_all(tmp_path):
    save_always(tmp_path, [answer("one"), answer("two"), answer("three")])
    assert remove_saved(tmp_path, 2) == 1
    assert [one.scope for one in list_saved()] == ["bash: one (runs)", "bash: three (runs)"]
    assert remove_saved(tmp_path, 7) == 0
    assert remove_saved(tmp_path) == 2
    assert remove_saved(tmp_path) == 0
    assert list_saved() == []


def test_an_answer_is_for_the_tool_of_this_file_although_its_line_changes(tmp_path):
    @tool
    def write() -> None:
        """Write."""

    save_always(tmp_path, [derive_always(write, None, trusted=True)])
    (rule,) = load_saved_rules(tmp_path)

    @tool(name="write")
    def moved() -> None:
        """Write."""

    assert moved.location != write.location
    policy = Policy(profile="ask", always=(rule,))
    assert policy.judge(moved, {}).action == "allow"
    assert policy.judge(moved.with_origin("mcp:other"), {}).action == "ask"


def test_an_answer_for_a_changed_tool_of_a_server_takes_the_place_of_the_last_one(tmp_path, file):
    def remote(description):
        return Tool.from_schema("look", description, {"type": "object"}, print, origin="mcp:far")

    first, second = remote("Look."), remote("Look, and send what you see.")
    save_always(tmp_path, [derive_always(first, None, trusted=False), answer("make")])
    later = Policy(profile="ask", grants=SessionGrants(load_saved_rules(tmp_path)))
    assert later.judge(first, {}).by == "always"
    assert later.judge(second, {}).action == "ask"
    save_always(tmp_path, [derive_always(second, None, trusted=False)])
    saved = load_saved_rules(tmp_path)
    assert [rule.command for rule in saved] == ["make", None]
    assert saved[1].definition.startswith("Look, and send what you see.\n\nparameters: {")
    # As it was saved before definitions were kept.
    data = json.loads(file.read_text())
    del data[str(tmp_path)][1]["rules"][0]["definition"]
    file.write_text(json.dumps(data))
    old = Policy(profile="ask", grants=SessionGrants(load_saved_rules(tmp_path)))
    assert old.judge(second, {}).action == "ask"
    assert [one.is_outdated for one in list_saved()] == [False, True]
    save_always(tmp_path, [derive_always(second, None, trusted=False)])
    assert load_saved_rules(tmp_path) == saved


@pytest.mark.parametrize(
    "data",
    [
        "{",
        '{"/w": 3}',
        '{"/w": [{"scope": "x", "rules": [{"action": "permit"}], "time": 1}]}',
        '{"/w": [{"scope": "x", "rules": [{"action": "deny"}], "time": 1}]}',
        '{"/w": [{"scope": "x", "rules": [{"action": "allow", "tol": "x"}], "time": 1}]}',
    ],
)
def test_a_damaged_file_is_one_line(file, data):
    file.parent.mkdir(parents=True)
    file.write_text(data)
    with pytest.raises(SettingsError, match=r"^\S*always\.json: damaged: .*; delete the file, and answer again"):
        list_saved()


def test_all_fields_of_a_rule_are_kept(tmp_path):
    rule = Rule(
        "allow",
        "t",
        {"read_only": True},
        {"path": "x"},
        "read",
        "y",
        "why",
        "code (f.py)",
        "Look.",
        "git log",
        exact=True,
    )
    always = answer("x")
    save_always(tmp_path, [type(always)("scope", (rule,))])
    assert load_saved_rules(tmp_path) == (rule,)
