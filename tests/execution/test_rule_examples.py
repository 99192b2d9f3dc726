"""Examples of rules, checked when a policy is read."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from ferrule.errors import PolicyError
from ferrule.execution import parse_policy
from tables import each_case


def parse(**rule):
    return parse_policy({"rules": [rule]}, "p.toml")


@pytest.mark.parametrize(
    "rule",
    [
        {
            "action": "allow",
            "command": "git status",
            "matches": ["git status", "git status -s", "git status && git status --short"],
            "not_matches": ["git stash", "git status; rm x", "git status > out.txt", "git -C x status", "$X status"],
        },
        {
            "action": "deny",
            "command": "git push --force",
            "matches": [
                "git push --force",
                "cd x && /usr/bin/git -C y push origin --force",
                "timeout 5 git push --force",
            ],
            "not_matches": ["git push", "echo git push --force"],
        },
        {"action": "deny", "target": "/etc/*", "matches": ["/etc/x", "/ws/../etc/x"], "not_matches": ["/ws/x"]},
        {"action": "allow", "effect": "write", "target": "src/*", "matches": ["src/a"], "not_matches": ["src/../a"]},
        {"action": "deny", "arguments": {"path": "*.env"}, "matches": ["a.env"], "not_matches": ["a.txt"]},
        {
            "action": "deny",
            "tool": "[ab]x",
            "arguments": {"path": "*.env", "force": "true"},
            "matches": [{"path": "a.env", "force": True}],
            "not_matches": [{"path": "a.env"}, {"path": "a.env", "force": False}],
        },
        {"action": "deny", "tool": "read_*", "matches": ["read_file"], "not_matches": ["write_file"]},
    ],
)
def test_examples_that_hold(rule):
    policy = parse(**rule)
    assert policy.rules[0].action == rule["action"]


@each_case(
    ("rule", "words"),
    [
        (
            {"action": "allow", "command": "git status", "matches": ["git status; rm x"]},
            "p.toml: rules[0]: matches: the rule allow for 'git status' doesn't match 'git status; rm x', judged as ",
        ),
        (
            {"action": "deny", "command": "rm", "not_matches": ["ls; /bin/rm x"]},
            "p.toml: rules[0]: not_matches: the rule deny for 'rm' matches 'ls; /bin/rm x', judged as ",
        ),
        (
            {"action": "allow", "tool": "read", "target": "/ws/*", "matches": ["/ws/../x"]},
            "matches: the rule allow for '/ws/*' of read doesn't match '/ws/../x', judged as the effect read /ws/../x",
        ),
        (
            {"action": "deny", "arguments": {"path": "*.env"}, "matches": ["a.txt"]},
            "matches: the rule deny for * doesn't match 'a.txt', judged as a call with path = 'a.txt'",
        ),
        (
            {"action": "deny", "arguments": {"path": "*.env"}, "not_matches": [{"path": "x.env"}]},
            "not_matches: the rule deny for * matches {'path': 'x.env'}, judged as a call with these arguments",
        ),
        ({"action": "deny", "tool": "a*", "matches": ["b"]}, "doesn't match 'b', judged as the name of a tool"),
        ({"action": "deny", "command": "rm", "matches": ["rm 'x"]}, "judged as a command line that can't be read: "),
        ({"action": "deny", "command": "rm", "matches": "rm x"}, "matches: got 'rm x'; expected a list"),
    ],
)
def test_an_example_that_fails_names_the_rule_and_what_it_was_judged_as(rule, words):
    with pytest.raises(PolicyError) as caught:
        parse(**rule)
    assert words in str(caught.value)


def test_without_a_parser_examples_of_commands_are_not_taken_for_checked(monkeypatch):
    for name in ("tree_sitter", "tree_sitter_bash"):
        monkeypatch.setitem(sys.modules, name, None)
    for example in ("matches", "not_matches"):
        # In a thread of its own, which has no parser yet.
        with (
            pytest.raises(PolicyError, match=r"rules\[0\]: its examples can't be checked: .* pip install") as caught,
            ThreadPoolExecutor(1) as pool,
        ):
            pool.submit(parse, action="deny", command="rm", **{example: ["rm x"]}).result()
        assert "correct the rule" not in str(caught.value)
