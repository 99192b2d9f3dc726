"""The profiles in their order: what a laxer one asks about or denies, no stricter one allows."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.execution import Policy, Rule
from ferrule.execution.profiles import Profile
from ferrule.execution.rules import STRICTNESS
from ferrule.tools.decorator import tool
from ferrule.tools.intent import Effect, Intent
from ferrule.toolspec import Annotations, ToolSpec

PROFILES: tuple[Profile, ...] = get_args(Profile)
WORKSPACE = Path("/nowhere/workspace")
HINTS = (None, True, False)
EFFECTS = [
    None,
    *(
        Effect(kind, target, is_protected=is_protected)
        for kind in ("read", "write", "run", "net")
        for target in (f"{WORKSPACE}/a", "/etc/passwd", "example.org", "")
        for is_protected in (False, True)
    ),
]


def list_strictness(subject, intent, workspace=WORKSPACE, **policy):
    return [
        STRICTNESS[Policy(profile=profile, **policy).judge(subject, {}, intent, workspace).action]
        for profile in PROFILES
    ]


def test_they_are_named_in_their_order():
    assert PROFILES == ("plan", "ask", "accept-edits", "auto", "all")


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_no_profile_allows_what_a_laxer_one_asks_about(effect):
    intent = None if effect is None else Intent((effect,))
    for read_only, destructive, open_world in itertools.product(HINTS, repeat=3):
        annotations = Annotations(read_only=read_only, destructive=destructive, open_world=open_world)
        for origin, approval, workspace in itertools.product(
            ("code", "mcp:x"), (None, "always", "never"), (WORKSPACE, None)
        ):
            subject = ToolSpec("one", "", {}, annotations, origin, approval)
            found = list_strictness(subject, intent, workspace)
            assert found == sorted(found, reverse=True), (annotations, origin, approval, found)


SUBJECTS = st.builds(
    lambda hints, origin, approval: ToolSpec("one", "", {}, Annotations(*hints), origin, approval),
    st.tuples(*[st.sampled_from(HINTS)] * 4),
    st.sampled_from(["code", "project", "mcp:x"]),
    st.sampled_from([None, "always", "never"]),
)
INTENTS = st.none() | st.builds(
    Intent, st.lists(st.sampled_from(EFFECTS[1:]), max_size=3).map(tuple), asks=st.booleans()
)
RULES = st.lists(
    st.builds(Rule, st.sampled_from(["allow", "ask", "deny"]), effect=st.sampled_from([None, "read", "write"])),
    max_size=2,
).map(tuple)


@given(SUBJECTS, INTENTS, RULES, RULES, st.sampled_from([(), ("*",)]))
def test_nor_with_rules(subject, intent, rules, always, trusted):
    allowing = tuple(rule for rule in always if rule.action == "allow")
    found = list_strictness(subject, intent, rules=rules, always=allowing, trusted=trusted)
    assert found == sorted(found, reverse=True)


def test_a_tool_that_works_in_folders_is_judged_by_them(tmp_path):
    """Without a profile it is asked about, though it comes from code; the folders need no `workspace`."""
    (tmp_path / "own").mkdir()
    (tmp_path / "added").mkdir()

    def intent(arguments):
        return Intent((Effect("read", arguments["path"]),))

    @tool(intent=intent)
    def look(path: str) -> str:
        """Look."""
        return path

    def judge(subject, path, policy=None, kind="read"):
        effects = Intent((Effect(kind, str(path)),))
        return (policy or Policy()).judge(subject, {"path": str(path)}, effects).action

    working = look.with_folders(tmp_path / "own", tmp_path / "added")
    assert [judge(look, tmp_path / "a", kind=kind) for kind in ("read", "write")] == ["allow", "allow"]
    for name in ("own", "added"):
        assert [judge(working, tmp_path / name / "a", kind=kind) for kind in ("read", "write")] == ["allow", "ask"]
        assert judge(working, tmp_path / name / "a", Policy(profile="accept-edits"), "write") == "allow"
    for profile in ("plan", "ask", "accept-edits", "auto"):
        assert judge(working, tmp_path / "a", Policy(profile=profile)) == "ask"
    assert judge(working, tmp_path / "a", Policy(profile="all")) == "allow"
    assert judge(working.with_name("other"), tmp_path / "a") == "ask"
