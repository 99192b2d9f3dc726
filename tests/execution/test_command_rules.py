"""Rules for commands by their words: what they allow, and what they see through to deny."""

from __future__ import annotations

import time

import pytest

from ferrule.errors import PolicyError
from ferrule.execution import Policy, Rule, parse_policy
from ferrule.execution.command_patterns import match_words
from ferrule.tools.decorator import tool
from ferrule.tools.intent import Effect, Intent
from ferrule.toolspec import ToolSpec
from tables import each_case

BASH = ToolSpec("bash", "", {})


def runs(*commands, kind="run"):
    """An intent with one effect per command, as the parser of command lines makes it."""
    return Intent(tuple(Effect(kind, command, tuple(command.split())) for command in commands))


def judge(policy, intent, workspace=None):
    return policy.judge(BASH, {"command": "not looked at"}, intent, workspace)


@each_case(
    ("pattern", "command", "allows", "denies"),
    [
        ("git status", "git status", True, True),
        ("git status", "git status -s", True, True),
        ("git status", "git stash", False, False),
        ("git status", "git statusx", False, False),
        ("git status", "git", False, False),
        ("git status", "/usr/bin/git status", False, True),
        ("git status", "./git status", False, True),
        ("/usr/bin/git status", "/usr/bin/git status", True, True),
        ("git status", "git -C x status", False, True),
        ("git status", "git --no-pager -c a=b status", False, True),
        ("git status", "git --git-dir=x --work-tree y status", False, True),
        ("git status", "git stash status", False, False),
        ("git -C x status", "git -C x status", True, True),
        ("git push --force", "git push origin main --force", False, True),
        ("git push --force", "git push --force-with-lease", False, False),
        ("git push --force*", "git push origin --force-with-lease", False, True),
        ("git push --force", "git push --forc origin", False, True),
        ("git push --force", "git push origin", False, False),
        ("git push origin", "git push -u origin main", False, True),
        ("rm -rf", "rm -fr x", False, True),
        ("rm -rf", "rm -r -v -f x", False, True),
        ("rm -rf", "rm -r x", False, False),
        ("rm", "rm", True, True),
        ("rm", "rmdir x", False, False),
        ("find -delete", "find . -name x -delete", False, True),
        ("find -delete", "find . -depth -ls -type f -empty", False, False),
        ("cargo test", "cargo +nightly test", False, True),
        ("npm test", "npm --prefix x test", False, True),
        ("rm", "sudo -u me /bin/rm -rf x", False, True),
        ("rm -rf", "ssh host rm -fr x", False, True),
        ("sudo", "sudo make", True, True),
        ("rm", "sudo make", False, False),
        ("rm", "echo rm x", False, False),
        ("npm run *", "npm run build", True, True),
        ("npm run *", "npm run", False, False),
        ("python3*", "python3.12 x.py", True, True),
        ("'my program' x", "my program x", False, False),
    ],
)
def test_a_command_is_matched_by_its_words(pattern, command, allows, denies):
    intent = runs(command)
    assert (judge(Policy((Rule("allow", command=pattern),), "ask"), intent).action == "allow") is allows
    for action in ("ask", "deny"):
        assert (judge(Policy((Rule(action, command=pattern),), "all"), intent).action == action) is denies


def test_a_word_may_contain_spaces():
    assert match_words(("my program", "x"), "'my program'", every=True, exact=False)
    assert not match_words(("my", "program", "x"), "'my program'", every=False, exact=False)


def test_a_command_line_that_a_program_is_given_is_looked_into():
    for words in (("su", "-c", "rm -rf x"), ("ssh", "host", "cd y && rm x")):
        assert not match_words(words, "rm", every=True, exact=False)
    assert match_words(("su", "-c", "rm -rf x"), "rm", every=False, exact=False)
    assert match_words(("sudo", "make"), "make", every=False, exact=True)
    assert not match_words(("sudo", "make", "x"), "make", every=False, exact=True)


@pytest.mark.parametrize("word", ["sudo", "rm", "-r", "'sudo \"sudo x\"'", "x y", "=a" * 500, "-oA=b=c;d"])
def test_a_long_line_is_matched_in_a_bounded_time(word):
    words = ("sudo", *[word] * (3000 if len(word) < 100 else 30))
    started = time.process_time()
    assert not match_words(words, "rm -rf /", every=False, exact=False)
    assert time.process_time() - started < 5


def test_a_sign_that_is_quoted_is_a_word():
    assert match_words(("find", ".", "-exec", "wc", "{}", ";"), "find . -exec wc '{}' ';'", every=True, exact=True)


def test_no_further_words_follow_an_exact_command():
    policy = Policy((Rule("allow", command="make", exact=True),), "ask")
    assert judge(policy, runs("make")).action == "allow"
    assert judge(policy, runs("make install")).action == "ask"
    denied = Policy((Rule("deny", command="make", exact=True),), "all")
    assert judge(denied, runs("/usr/bin/make")).action == "deny"
    assert judge(denied, runs("make install")).action == "allow"


def test_each_program_of_a_chain_is_judged():
    policy = Policy((Rule("allow", command="ls"),), "ask")
    assert judge(policy, runs("ls", "ls -l")).action == "allow"
    assert judge(policy, runs("ls", "rm -rf x")).action == "ask"
    # A redirection is an effect without words.
    assert judge(policy, Intent((*runs("ls").effects, Effect("write", "out.txt")))).action == "ask"
    assert judge(policy, Intent((*runs("ls").effects, Effect("net", "example.org")))).action == "ask"


def test_a_rule_for_a_command_needs_an_effect_with_words():
    policy = Policy((Rule("allow", command="*"),), "ask")
    assert judge(policy, None).action == "ask"
    assert judge(policy, Intent()).action == "ask"
    assert judge(policy, Intent((Effect("run", "ls"),))).action == "ask"


@pytest.mark.parametrize("action", ["deny", "ask"])
def test_a_program_that_can_not_be_known_is_asked_about_where_a_command_is_denied(action):
    unknown = Intent((Effect("run", "$RM -rf x"),))
    verdict = judge(Policy((Rule("allow"), Rule(action, command="rm")), "all"), unknown)
    assert (verdict.action, verdict.by) == ("ask", "rule")
    assert verdict.reason == f"a rule says {action} for 'rm', and which program this runs isn't known"
    assert judge(Policy((Rule(action, command="rm"),), "plan"), unknown).action == "deny"
    visible = Intent((Effect("run", "A=$B rm x"),))
    assert judge(Policy((Rule(action, command="rm"),), "all"), visible).action == action
    assert judge(Policy((Rule("deny", "other", command="rm"),), "all"), unknown).action == "allow"
    assert judge(Policy((Rule(action, command="rm"), Rule("deny", effect="run")), "all"), unknown).action == "deny"
    # A file tool runs nothing.
    assert judge(Policy((Rule(action, command="rm"),), "all"), Intent((Effect("write", "a"),))).action == "allow"


def test_an_allowed_command_writes_outside_the_workspace_only_by_its_target(tmp_path):
    outside = Intent((Effect("write", "/etc/x", ("cp", "a", "/etc/x")),))
    inside = Intent((Effect("write", str(tmp_path / "x"), ("cp", "a", "x")),))
    policy = Policy((Rule("allow", command="cp"),), "ask")
    assert judge(policy, inside, tmp_path).action == "allow"
    assert judge(policy, outside, tmp_path).action == "ask"
    assert judge(Policy((Rule("allow", command="cp", target="/etc/*"),), "ask"), outside, tmp_path).action == "allow"
    assert judge(Policy((Rule("deny", command="cp"),), "all"), outside, tmp_path).action == "deny"


@pytest.mark.parametrize(
    ("profile", "wanted"),
    [("plan", "deny"), ("ask", "ask"), ("accept-edits", "ask"), ("auto", "ask"), ("all", "allow")],
)
def test_protected_places_are_asked_about(profile, wanted, tmp_path):
    git = str(tmp_path / ".git")
    commit = Intent((Effect("write", git, ("git", "commit"), is_protected=True),))
    assert judge(Policy(profile=profile), commit, tmp_path).action == wanted
    assert judge(Policy((Rule("allow", command="git commit"),), profile), commit, tmp_path).action == "allow"
    assert judge(Policy((Rule("allow", target=git),), profile), commit, tmp_path).action == "allow"
    # A rule that names neither the command nor the place wasn't written with it in mind.
    assert judge(Policy((Rule("allow", "bash"),), profile), commit, tmp_path).action == wanted
    assert judge(Policy((Rule("allow", effect="write"),), profile), commit, tmp_path).action == wanted


def test_reading_a_protected_place_is_reading(tmp_path):
    look = Intent((Effect("read", str(tmp_path / ".git"), ("git", "status"), is_protected=True),))
    for profile in ("plan", "ask", "accept-edits", "auto"):
        assert judge(Policy(profile=profile), look, tmp_path).action == "allow"


def test_commands_in_a_file():
    policy = parse_policy({"rules": [{"command": "npm test", "action": "allow"}], "profile": "ask"}, "p.toml")
    assert judge(policy, runs("npm test -- -u")).action == "allow"
    assert policy.rules[0].source == "p.toml: rules[0]"
    assert judge(policy, runs("npm test")).rule is policy.rules[0]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"command": ""}, "a rule's command must have at least a program's name, such as 'git status', not ''"),
        ({"command": "echo 'x"}, "a rule's command must be words as in a shell, not \"echo 'x\": No closing quotation"),
        ({"command": "ls && rm x"}, "names one program, not a command line: 'ls && rm x' contains '&&'"),
        ({"command": 3}, "'command' of a rule must be text, not 3"),
        ({"exact": True}, "exact of a rule is for its command: add command, or leave exact out"),
    ],
)
def test_a_wrong_command_is_refused(fields, words):
    with pytest.raises(PolicyError) as caught:
        Rule("deny", **fields)
    assert words in str(caught.value)
    if fields != {"command": 3}:
        with pytest.raises(PolicyError, match=r"^policy: rules\[0\]: "):
            parse_policy({"rules": [{"action": "deny", **fields}]})


@tool
def silent(command: str) -> str:
    """Say nothing of what it does."""
    return command


def test_a_rule_for_a_command_of_a_tool_that_tells_nothing_of_its_commands_is_reported():
    problem = "the rule deny for 'rm' of silent: no matching tool says which commands it runs, so it never matches"
    assert Policy((Rule("deny", "silent", command="rm"),)).find_unused([silent]) == [problem]


def test_an_allowed_command_reads_outside_the_workspace_only_by_its_target_or_exactly(tmp_path):
    outside = Intent((Effect("read", "/etc/passwd", ("cat", "/etc/passwd")),))
    inside = Intent((Effect("read", str(tmp_path / "x"), ("cat", "x")),))
    for profile in ("accept-edits", "auto"):
        policy = Policy((Rule("allow", command="cat"),), profile)
        assert judge(policy, inside, tmp_path).action == "allow"
        assert judge(policy, outside, tmp_path).action == "ask"
        exactly = Policy((Rule("allow", command="cat /etc/passwd", exact=True),), profile)
        assert judge(exactly, outside, tmp_path).action == "allow"
