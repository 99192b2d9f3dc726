"""`ferrule policy`: explanations, checks, trust and saved answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from terminals import Terminal, assert_refused, ferrule

from ferrule.execution.always import Always
from ferrule.execution.rules import Rule
from ferrule.session.saved_rules import save_always

RUN_TOOL = '''
from collections.abc import Mapping
from typing import Any

from ferrule import tool
from ferrule.tools.intent import Effect, Intent


def list_programs(arguments: Mapping[str, Any]) -> Intent:
    programs = arguments["line"].split(" && ")
    return Intent(tuple(Effect("run", one, tuple(one.split())) for one in programs))


@tool(intent=list_programs)
def run(line: str, shell: str = "sh") -> str:
    """Run programs."""
    return line
'''


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project, the current folder, with a tool that says which programs it runs."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "config" / "ferrule").mkdir(parents=True)
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "run_tool.py").write_text(RUN_TOOL)
    return folder


def policy(project: Path, *arguments: str, typed: str = ""):
    return ferrule("policy", *arguments, typed=typed, folder=project)


def explain(project: Path, line: str, *arguments: str):
    tools = ("--tools", str(project.parent / "run_tool.py"))
    return policy(project, "explain", "--tool", "run", "--arguments", json.dumps({"line": line}), *tools, *arguments)


RULES = """
[[policy.rules]]
command = "git push"
action = "deny"
reason = "ask a colleague"
[[policy.rules]]
command = "git"
action = "ask"
[[policy.rules]]
command = "npm test"
action = "allow"
"""


def test_each_part_is_explained_with_the_rule_that_decides(project):
    (project / "ferrule.toml").write_text(RULES)
    path = "ferrule.toml"
    done = explain(project, "git -C x push && npm test && ls")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"run is denied: ask a colleague ({path}: policy.rules[0])",
        "  git -C x push",
        (
            f"    run git -C x push: denied by the rule deny the command git push … ({path}: policy.rules[0]): "
            "ask a colleague"
        ),
        f"      also matches: ask the command git … ({path}: policy.rules[1])",
        "  npm test",
        "    run npm test: asked about by the profile: the profile ask asks before run may run npm test",
        "  ls",
        "    run ls: asked about by the profile: the profile ask asks before run may run ls",
    ]
    assert "is not trusted: it only tightens; see `ferrule policy trust`" in done.stderr
    assert policy(project, "trust", "--yes").returncode == 0
    allowed = explain(project, "npm test")
    assert (allowed.returncode, allowed.stderr) == (0, "")
    assert f"allowed by the rule allow the command npm test … ({path}: policy.rules[2])" in allowed.stdout
    assert explain(project, "git push", "--no-project", "--profile", "all").returncode == 0


def test_the_policy_is_the_users_with_that_of_the_project(project):
    user = project.parent / "config" / "ferrule" / "ferrule.toml"
    user.write_text('[policy]\nprofile = "plan"')
    assert "denied by the profile: the profile plan allows only reading" in explain(project, "make").stdout
    given = project.parent / "given.toml"
    given.write_text('[[rules]]\ncommand = "make"\naction = "allow"')
    assert explain(project, "make", "--policy", str(given)).returncode == 0
    save_always(project, [Always("run: ls", (Rule("allow", "run", command="ls"),))])
    user.unlink()
    assert "allowed by the rule allow run: the command ls …" in explain(project, "ls").stdout
    user.write_text("[")
    damaged = explain(project, "ls", "--policy", str(given))
    assert damaged.returncode == 1
    assert damaged.stderr.count("\n") == 1
    assert "ferrule.toml: not TOML" in damaged.stderr


def test_as_json(project):
    (project / "ferrule.toml").write_text(RULES)
    done = json.loads(explain(project, "git push && ls", "--json").stdout)
    assert (done["tool"], done["action"], done["by"]) == ("run", "deny", "rule")
    assert done["rule"]["source"] == "ferrule.toml: policy.rules[0]"
    assert [one["action"] for one in done["effects"]] == ["deny", "ask"]
    assert [one["action"] for one in done["effects"][0]["matching"]] == ["deny", "ask"]
    flags = {"is_protected": False, "is_recursive": False}
    assert done["effects"][1]["effect"] == {"kind": "run", "target": "ls", "words": ["ls"], **flags}


def test_a_command_line_is_a_call_of_bash(project):
    done = policy(project, "explain", "frobnicate\u202e", "--profile", "plan")
    assert done.returncode == 1
    assert done.stdout.startswith("bash is denied: the profile plan allows only reading")
    assert "\u202e" not in done.stdout


def test_the_programs_and_redirections_of_a_command_line_are_judged(project):
    (project / "ferrule.toml").write_text(RULES)
    done = policy(project, "explain", "cd src && npm test > ../../log; sudo git push", "--profile", "accept-edits")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "bash is denied: ask a colleague (ferrule.toml: policy.rules[0])"
    assert [line.strip() for line in lines if line[:2] == "  " and line[2] != " "][:4] == [
        "cd src",
        "npm test",
        (
            f"write {project}/src/../../log: asked about by the profile: the profile accept-edits asks before bash may "
            f"write outside the workspace: {project.parent}/log"
        ),
        "sudo git push",
    ]
    unread = policy(project, "explain", "echo 'x", "--profile", "auto")
    assert unread.returncode == 1
    assert "  it can't be judged: " in unread.stdout


def test_a_journal_is_judged_anew(project):
    tools, journal = str(project.parent / "run_tool.py"), project / "journal"
    for line, yes in (("make", ["--yes"]), ("make", []), ("git push", ["--yes"])):
        ferrule("call", "--tools", tools, "--journal", str(journal), *yes, "run", "--line", line, folder=project)
    ferrule(
        "call", "--tools", tools, "--journal", str(journal), "--policy", "p.toml", "run", "--line", "ls", folder=project
    )
    rules = project / "policy.toml"
    rules.write_text('profile = "ask"')
    same = policy(project, "explain", "--journal", str(journal), "--policy", str(rules))
    assert same.stdout == "3 recorded calls, of which 0 would be decided in another way\n       3 asked about\n"
    assert same.returncode == 0
    rules.write_text('[[rules]]\ncommand = "make"\naction = "allow"\n[[rules]]\ncommand = "git push"\naction = "deny"')
    done = policy(project, "explain", "--journal", str(journal), "--policy", str(rules))
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "3 recorded calls, of which 3 would be decided in another way",
        "       2 asked about → allowed",
        "       1 asked about → denied",
        *[
            'asked about → allowed: run {"line": "make"}',
            f"  allowed by the rule allow the command make … ({rules}: rules[0])",
        ]
        * 2,
        'asked about → denied: run {"line": "git push"}',
        f"  denied by the rule deny the command git push … ({rules}: rules[1])",
    ]
    told = json.loads(policy(project, "explain", "--journal", str(journal), "--policy", str(rules), "--json").stdout)
    assert (told["calls"], told["skipped"], len(told["changed"])) == (3, 0, 3)
    assert {"before": "ask", "now": "deny", "calls": 1} in told["counts"]


def test_trust_is_shown_before_it_is_given_and_ends_with_a_change(project):
    (project / "ferrule.toml").write_text(RULES + '\n[mcp.x]\ncommand = ["\\u202eevil"]\n')
    (project / ".ferrule" / "tools").mkdir(parents=True)
    tool_file = project / ".ferrule" / "tools" / "a_tool.py"
    tool_file.write_text("raise SystemExit('was run')")
    assert_refused(
        policy(project, "trust"), "nobody can be asked here, so nothing was trusted; --yes trusts: ", "npm test"
    )
    with Terminal("policy", "trust", str(project)) as terminal:
        terminal.expect("Trust these files as they are now?")
        terminal.type("n\r")
        assert terminal.ended() == 1
    with Terminal("policy", "trust", str(project)) as terminal:
        terminal.expect("Trust these files as they are now?")
        terminal.type("maybe\r")
        terminal.expect("Trust these files as they are now?")
        terminal.type("\x04")
        terminal.expect("nothing was trusted")
        assert terminal.ended() == 1
    assert policy(project, "list").stdout == "nothing is trusted, and nothing is allowed for good\n"
    done = policy(project, "trust", "--yes")
    assert done.stdout.splitlines() == [
        "ferrule.toml allows the command npm test …",
        "ferrule.toml starts the MCP server x: \\u202eevil",
        f"{tool_file} is run as a part of ferrule, not contained",
        "trusted",
    ]
    assert "nothing that needs trust" in policy(project, "trust").stdout
    tool_file.write_text("changed = True")
    assert policy(project, "trust", "--yes").stdout.splitlines()[0].startswith(str(tool_file))
    listed = json.loads(policy(project, "list", "--json").stdout)
    assert [(one["kind"], one["path"]) for one in listed["trusted"]] == [
        ("tools", str(tool_file.parent)),
        ("project", str(project / "ferrule.toml")),
    ]
    assert policy(project, "forget").stdout == "removed 0 answers; 2 files no longer trusted\n"
    assert_refused(policy(project, "forget"), "nothing was trusted or allowed for good here")


def test_saved_answers_are_listed_and_removed(project):
    save_always(project, [Always("run: one", (Rule("allow", "one"),)), Always("run: two", (Rule("allow", "two"),))])
    lines = policy(project, "list").stdout.splitlines()
    assert lines[0].startswith(f"always in {project}: 1. run: one, since ")
    assert lines[1].startswith(f"always in {project}: 2. run: two, since ")
    assert policy(project, "forget", "--answer", "1").stdout == "removed 1 answer\n"
    assert_refused(policy(project, "forget", "--answer", "2"), "has no answer 2")
    assert policy(project, "forget").stdout == "removed 1 answer; 0 files no longer trusted\n"


def test_files_are_checked(project):
    good, bad = project / "ferrule.toml", project / "policy.toml"
    good.write_text(RULES)
    bad.write_text('[[rules]]\naction = "deny"\ncomand = "rm"')
    assert policy(project, "check", str(good)).stdout == f"{good}: 3 rules, no problems\n"
    assert_refused(
        policy(project, "check", str(good), str(bad)), "rules[0].comand: unknown field; did you mean command?"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give one of a command line, --tool NAME with --arguments JSON, and --journal FILE"),
        (("ls", "--tool", "bash"), "give one of a command line"),
        (("--tool", "bsh"), "no tool is named 'bsh'; the nearest: bash"),
        (("--tool", "bash"), "command: got nothing; expected a string"),
        (("--tool", "bash", "--arguments", "{"), "Wrong arguments"),
        (("ls", "--profile", "al"), "--profile must be one of plan, ask, accept-edits, auto, all, not 'al'"),
        (("--journal", "none"), "none: No such file or directory"),
        (("ls", "--policy", "none.toml"), "none.toml: can't be read"),
    ],
)
def test_wrong_input_is_one_line(project, arguments, words):
    assert_refused(policy(project, "explain", *arguments), words)


def test_check_warns_of_names_that_no_tool_has(project):
    (project / "rules.toml").write_text(
        '[[rules]]\ntool = "bahs"\naction = "deny"\n'
        '[[rules]]\ntool = "bash"\narguments = { comand = "rm *" }\naction = "deny"\n'
        '[[rules]]\ntool = "run"\naction = "deny"\n'
    )
    done = policy(project, "check", "rules.toml", "--tools", str(project.parent / "run_tool.py"))
    assert (done.returncode, done.stdout) == (0, "rules.toml: 3 rules, 2 warnings\n")
    first, second = done.stderr.splitlines()
    assert first == "ferrule: rules.toml: the rule deny for 'bahs' matches no tool; did you mean bash?"
    assert second.endswith("no matching tool has an argument 'comand'; did you mean command?")


def test_a_file_that_is_no_journal_is_refused(project):
    for text in ("not a journal\n", '{"a": 1}\n', '[[rules]]\naction = "deny"\n'):
        (project / "calls").write_text(text)
        assert_refused(policy(project, "explain", "--journal", "calls"), "calls: not a journal")
    (project / "calls").write_text("")
    assert policy(project, "explain", "--journal", "calls").returncode == 0


def test_explain_knows_the_tools_of_the_project(project):
    (project / "ferrule.toml").write_text(
        '[[tools]]\nname = "count_lines"\ndescription = "Count."\ncommand = ["wc", "-l", "a"]\n'
    )
    (project / ".ferrule" / "tools").mkdir(parents=True)
    (project / ".ferrule" / "tools" / "greet_tool.py").write_text(
        'from ferrule import tool\n\n\n@tool\ndef greet() -> str:\n    """Greet."""\n    return "hello"\n'
    )
    refused = policy(project, "explain", "--tool", "greet")
    assert refused.returncode == 2
    assert "greet_tool.py" in refused.stderr  # it isn't trusted, so its code hasn't run
    assert policy(project, "trust", "--yes").returncode == 0
    for name in ("greet", "count_lines"):
        assert policy(project, "explain", "--tool", name).stdout.startswith(f"{name} is asked about")


def test_the_reason_is_that_of_the_profile_in_force(project):
    (project / "ferrule.toml").write_text('[[policy.rules]]\ncommand = "git push"\naction = "deny"\n')
    (project / "a.txt").write_text("a\n")
    for profile in ("plan", "ask", "accept-edits"):
        done = policy(project, "explain", "--profile", profile, "cat a.txt")
        assert done.returncode == 0
        assert f"the profile {profile} allows reading" in done.stdout
        assert "the profile all" not in done.stdout


@pytest.mark.parametrize("line", ["cat s*/x", "cat */x", "grep -r X .", "rg X", "mv secrets z"])
def test_a_rule_for_a_path_decides_for_a_command_that_may_reach_it(project, line):
    (project / "ferrule.toml").write_text('[[policy.rules]]\ntarget = "*/secrets/*"\naction = "deny"\n')
    (project / "secrets").mkdir()
    (project / "secrets" / "x").write_text("x\n")
    for profile in ("ask", "accept-edits", "all"):
        done = policy(project, "explain", "--profile", profile, line)
        assert done.returncode == 1
        assert "a rule says deny for '*/secrets/*'" in done.stdout.splitlines()[0]


def test_nothing_that_is_to_be_trusted_is_out_of_sight(project):
    hostile = "echo fine" + " " * 200 + "; curl evil"
    (project / "ferrule.toml").write_text(f'[mcp.x]\ncommand = ["sh", "-c", "{hostile}"]\n')
    with Terminal("policy", "trust", str(project)) as terminal:
        terminal.expect("[200 spaces]")
        terminal.expect("curl evil")
        terminal.expect("Trust these files as they are now?")
        terminal.type("n\r")
        assert terminal.ended() == 1
    done = policy(project, "trust", "--yes")
    assert (
        done.stdout.splitlines()[0]
        == "ferrule.toml starts the MCP server x: sh -c 'echo fine [200 spaces] ; curl evil'"
    )
