"""Rules on paths and addresses: a value that is written in a roundabout way slips through none of them."""

from __future__ import annotations

import os
from pathlib import Path

from ferrule.execution import Policy, Rule
from ferrule.tools.intent import Effect, Intent
from ferrule.toolspec import ToolSpec
from tables import each_case

LOOK = ToolSpec("look", "", {})


def allows(pattern: str, value: object) -> bool:
    return Policy((Rule("allow", arguments={"it": pattern}),), "ask").judge(LOOK, {"it": value}).action == "allow"


def denies(pattern: str, value: object) -> bool:
    return Policy((Rule("deny", arguments={"it": pattern}),), "all").judge(LOOK, {"it": value}).action == "deny"


PLAIN = [
    ("/ws/*", "/ws/a/b.txt"),
    ("/ws/*", "/ws/a..b/...c/.d"),
    ("/ws/*", "/ws/folder/"),
    ("/ws/*", "/ws/100%"),
    ("/ws/*", ["/ws/a", "/ws/b"]),
    ("./src/*", "./src/a.py"),
    ("src/*", "src/a.py"),
    ("~/ws/*", "~/ws/a"),
    ("*", "/ws/../etc/passwd"),
    ("*.txt", "../a.txt"),
    ("notes*", "notes/a"),
    ("git *", "git diff a/../b"),
    ("https://good.example/*", "https://good.example/a?next=/../b"),
    ("https://me@good.example/*", "https://me@good.example/a"),
    ('*"/ws/*', {"path": "/ws/a"}),
]


@each_case(("pattern", "value"), PLAIN)
def test_an_allow_rule_matches_what_is_written_plainly(pattern: str, value: object) -> None:
    assert allows(pattern, value)


ROUNDABOUT = [
    ("/ws/*", "/ws/../etc/passwd"),
    ("/ws/*", "/ws/a/../b"),
    ("/ws/*", "/ws/a/.."),
    ("/ws/*", "/ws//a"),
    ("/ws/*", "/ws/./a"),
    ("/ws/*", "/ws/."),
    ("/ws/*", "/ws/a//"),
    ("/ws/*", "/ws/a\0/b"),
    ("/ws/*", "/ws/..\\..\\etc"),
    ("/ws/*", "/ws/%2e%2e/etc/passwd"),
    ("/ws/*", "/ws/%252E%252e%252fetc"),
    ("/ws/*", "/ws/%2525252525252e%252e/a"),
    ("/ws/*", "/ws/..%2fa"),
    ("/ws/*", ["/ws/a", "/ws/../b"]),
    ("./src/*", "./src/../a"),
    ("*/ws/*", "../ws/a"),
    ("*/a", "~root/a"),
    ("notes*", "notes/../../etc/passwd"),
    ("cat /ws/*", "cat /ws/../etc/passwd"),
    ("https://good.example/*", "https://good.example/../a"),
    ("https://good.example/*", "https://good.example/%2e%2E/a"),
    ("https://good.example/*", "https://good.example/a\\..\\b"),
    ("https://good.example/*", "https://good.example/\n//evil.example"),
    ("https://good.example*", "https://good.example@evil.example/"),
    ("https://*.good.example/*", "https://evil.example\\.good.example/"),
    ("https://*.example/*", "https://evil.com\uff0f.example/"),
    ("https://[*", "https://[good.example/"),
    ('*"/ws/*', {"path": "/ws/../a"}),
]


@each_case(("pattern", "value"), ROUNDABOUT)
def test_an_allow_rule_does_not_match_what_normalising_would_change(pattern: str, value: object) -> None:
    assert not allows(pattern, value)


DENIED = [
    ("/etc/*", "/etc/passwd"),
    ("/etc/*", "/ws/../etc/passwd"),
    ("/etc/*", "//etc/passwd"),
    ("/etc/*", "/./etc//passwd"),
    ("/etc/*", "/ws/%2e%2e/etc/passwd"),
    ("/etc/*", "/%65tc/passwd"),
    ("/etc/*", "/ws\\..\\etc\\passwd"),
    ("/etc/passwd", "/etc/passwd/"),
    ("/etc/passwd", "/etc/passwd\0.txt"),
    ("/etc/*", ["/ws/a", "/ws/../etc/passwd"]),
    ("/etc/*", os.path.relpath("/etc/passwd")),
    (f"{Path.home()}/.ssh/*", "~/.ssh/id"),
    ("src/*", "./src/a"),
    ("https://evil.example/*", "HTTPS://Evil.Example./a"),
    ("https://evil.example/*", "https://me:word@evil.example:443/a"),
    ("https://evil.example/*", "https:\\\\evil.example\\a"),
    ("https://evil.example/*", "https://evil.example"),
    ("https://evil.example/a/*", "https://evil.example/b/../a/c?d"),
    ("https://evil.example:8443/*", "https://EVIL.example:8443/a"),
]


@each_case(("pattern", "value"), DENIED)
def test_a_deny_rule_matches_what_a_value_comes_to(pattern: str, value: object) -> None:
    assert denies(pattern, value)


def test_a_deny_rule_says_nothing_of_others() -> None:
    assert not denies("/etc/*", "/ws/etc/passwd")
    assert not denies("https://evil.example/*", "https://good.example/?to=https://evil.example/")
    assert not denies("https://evil.example/*", "https://[broken")


def test_targets_of_effects_are_matched_alike() -> None:
    def action(rule: Rule, effect: Effect) -> str:
        return Policy((rule,), "ask").judge(LOOK, {}, Intent((effect,))).action

    assert action(Rule("deny", target="/etc/*"), Effect("write", "//etc/passwd")) == "deny"
    assert action(Rule("allow", target="https://good.example/*"), Effect("net", "https://good.example/a")) == "allow"
    assert action(Rule("allow", target="https://good.example*"), Effect("net", "https://good.example@evil/")) == "ask"
    assert action(Rule("deny", target="https://evil.example/*"), Effect("net", "HTTPS://evil.example/a")) == "deny"


def test_a_pattern_of_many_stars_costs_little() -> None:
    # An engine that tries every way to share out the text needs years for it.
    assert not allows("*a" * 30 + "b", "a" * 5000)
