"""`ferrule.toml`: what is read, what of it counts in a project, and that it can only tighten until it is trusted."""

from __future__ import annotations

import os

import pytest

from ferrule.errors import SettingsError
from ferrule.execution import Policy, Rule, SessionGrants
from ferrule.execution.always import derive_always
from ferrule.session.project import load_project
from ferrule.session.project_file import read_project_file
from ferrule.tools.intent import Effect, Intent
from ferrule.toolspec import ToolSpec

BASH = ToolSpec("bash", "", {})


@pytest.fixture(autouse=True)
def user_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "config" / "ferrule").mkdir(parents=True)


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def write_user(tmp_path, text):
    (tmp_path / "config" / "ferrule" / "ferrule.toml").write_text(text)


def judge(policy, command, workspace=None, kind="run"):
    return policy.judge(BASH, {}, Intent((Effect(kind, command, tuple(command.split())),)), workspace).action


WHOLE = """
add_dirs = ["../shared"]

[policy]
profile = "ask"
[[policy.rules]]
command = "npm test"
action = "allow"
[[policy.rules]]
command = "git push"
action = "deny"

[[tools]]
name = "run_script"
description = "Run a script of package.json."
command = ["npm", "run", "{script}"]
parameters = { script = { description = "The script's name", enum = ["build", "lint"] } }

[mcp.github]
url = "https://api.example.org/mcp/"
headers = { Authorization = "Bearer abc", X-Region = "eu" }
[mcp.local]
command = ["node", "server.js"]
env = { NODE_OPTIONS = "-r ./x.js", API_KEY = "abc", A_TOKEN = "" }
[mcp.plain]
command = ["node", "server.js"]

[code]
context_limit = 200_000
test_command = ["make", "check"]
visible = [".env"]
"""


def test_what_a_project_may_say_before_and_after_it_is_trusted(workspace):
    (workspace / "ferrule.toml").write_text(WHOLE)
    project = load_project(workspace)
    assert project.problems == ()
    assert project.list_untrusted() == [
        "allows the command npm test …",
        "offers the tool run_script, which runs: npm run {script}",
        "starts the MCP server github: https://api.example.org/mcp/; sends Authorization (value hidden), X-Region=eu",
        "starts the MCP server local: node server.js; sets 'NODE_OPTIONS=-r ./x.js', API_KEY (value hidden), A_TOKEN=",
        "starts the MCP server plain: node server.js",
        f"opens the folder {workspace}/../shared",
        "runs the tests by: make check",
        "shows .env, which may hold secrets, to tools and commands",
    ]
    assert (project.tools, project.servers, project.folders, project.visible) == ((), {}, (), ())
    assert (project.code.context_limit, project.code.test_command) == (200_000, None)
    policy = project.make_policy(profile="auto")
    assert judge(policy, "git push") == "deny"
    assert judge(policy, "npm test") == "ask"  # the project's profile is tighter
    trusted = project.trust()
    assert trusted.list_untrusted() == []
    assert [tool.name for tool in trusted.tools] == ["run_script"]
    assert list(trusted.servers) == ["github", "local", "plain"]
    assert trusted.folders == (workspace / "../shared",)
    assert trusted.code.test_command == ("make", "check")
    assert trusted.visible == (".env",)
    assert judge(trusted.make_policy(), "npm test") == "allow"
    assert judge(trusted.make_policy(), "git push") == "deny"
    # The next start finds it trusted; a changed file is asked about again.
    assert load_project(workspace).own.is_trusted
    (workspace / "ferrule.toml").write_text(WHOLE + "\n# changed\n")
    assert not load_project(workspace).own.is_trusted


def test_a_user_shows_hidden_files_in_all_projects(workspace, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text('[code]\nvisible = [".env.test", "config/.env"]\n')
    assert load_project(workspace, own).visible == (".env.test", "config/.env")
    own.write_text('[code]\nvisible = ["/etc/shadow"]\n')
    (problem,) = load_project(workspace, own).problems
    assert "code.visible" in problem
    assert "'/etc/shadow' can't be made visible: name a file, as in '.env', or its path within the workspace" in problem


def test_a_file_that_only_tightens_needs_no_trust(workspace):
    (workspace / "ferrule.toml").write_text(
        '[policy]\nprofile = "plan"\n[[policy.rules]]\ncommand = "git push"\naction = "deny"'
        "\n[code]\ncontext_limit = 9000"
    )
    project = load_project(workspace)
    assert project.list_untrusted() == []
    assert judge(project.make_policy(profile="all"), "make") == "deny"


@pytest.mark.parametrize("user_action", ["deny", "ask"])
def test_a_trusted_project_overrides_no_rule_of_the_user(tmp_path, workspace, user_action):
    write_user(tmp_path, f'[[policy.rules]]\ncommand = "npm"\naction = "{user_action}"')
    (workspace / "ferrule.toml").write_text('[[policy.rules]]\naction = "allow"\ncommand = "*"')
    project = load_project(workspace).trust()
    assert judge(project.make_policy(), "npm test") == user_action
    assert judge(project.make_policy(), "make") == "allow"
    # The profile that the user chose for now is no weaker.
    assert judge(project.make_policy(profile="plan"), "make") == "deny"


def test_asking_in_a_project_does_not_loosen_the_profile(workspace):
    (workspace / "ferrule.toml").write_text('[policy]\nprofile = "all"\n[[policy.rules]]\naction = "ask"')
    project = load_project(workspace)
    assert judge(project.make_policy(profile="plan"), "make") == "deny"
    assert judge(project.make_policy(profile="all"), "make") == "ask"
    assert judge(project.make_policy(profile="all"), "ls", kind="read") == "ask"


def test_a_project_asks_although_the_user_allows(tmp_path, workspace):
    write_user(tmp_path, '[[policy.rules]]\ncommand = "npm"\naction = "allow"')
    assert judge(load_project(workspace).make_policy(), "npm test") == "allow"
    (workspace / "ferrule.toml").write_text('[[policy.rules]]\ncommand = "npm publish"\naction = "ask"')
    policy = load_project(workspace).make_policy()
    assert (judge(policy, "npm test"), judge(policy, "npm publish")) == ("allow", "ask")


def test_an_always_answers_for_the_profile_of_the_project(workspace):
    (workspace / "ferrule.toml").write_text('[policy]\nprofile = "ask"')
    grants = SessionGrants()
    policy = load_project(workspace).make_policy(profile="auto", grants=grants)
    assert judge(policy, "make") == "ask"
    policy = policy.with_always(derive_always(BASH, Intent((Effect("run", "make", ("make",)),)), trusted=True))
    assert judge(policy, "make") == "allow"
    assert len(grants.rules) == 1


def test_a_given_policy_takes_the_place_of_the_users(tmp_path, workspace):
    write_user(tmp_path, '[policy]\nprofile = "plan"')
    assert judge(load_project(workspace).make_policy(), "make") == "deny"
    given = Policy((Rule("allow", command="make"),))
    assert judge(load_project(workspace).make_policy(given), "make") == "allow"
    assert judge(load_project(workspace).make_policy(given), "other") == "ask"


def test_the_users_tools_and_servers_come_first(tmp_path, workspace):
    tool = '[[tools]]\nname = "check"\ndescription = "Check."\ncommand = ["{}"]\n[mcp.one]\ncommand = ["{}"]\n'
    write_user(tmp_path, tool.replace("{}", "mine"))
    (workspace / "ferrule.toml").write_text(tool.replace("{}", "theirs"))
    project = load_project(workspace)
    assert [one.command for one in project.tools] == [("mine",)]
    trusted = project.trust()
    assert [one.command for one in trusted.tools] == [("mine",)]
    assert trusted.servers["one"].command == ("mine",)


BAD = [
    ("profile = ", "not TOML: Invalid value"),
    (b"\xff\xfe", "not UTF-8 text: invalid start byte at byte 0"),
    ("[polcy]", "polcy: unknown field; did you mean policy?"),
    ("[policy]\nprofil = 'ask'", "policy.profil: unknown field; did you mean profile?"),
    ("[[policy.rules]]\naction = 'permit'", "policy.rules[0].action: got 'permit'; input should be 'allow', 'ask'"),
    (
        "[[policy.rules]]\naction = 'deny'\ncomand = 'rm'",
        "policy.rules[0].comand: unknown field; did you mean command?",
    ),
    ("[[policy.rules]]\naction = 'deny'\ncommand = 'a && b'", "policy.rules[0]: a rule's command names one program"),
    ("[[tools]]\nname = 'x'", "tools[0].description: is missing; add it"),
    (
        "[[tools]]\nname = 'x'\ndescription = 'x'\ncommand = ['ls', '{path}']",
        "tools[0]: the command has {path}, and there is no parameter 'path'",
    ),
    (
        "[[tools]]\nname = 'x'\ndescription = 'x'\ncommand = ['ls']\nparameters = { path = {} }",
        "tools[0]: the command lacks {path}, though there is a parameter 'path'",
    ),
    (
        "[[tools]]\nname = 'x'\ndescription = 'x'\ncommand = ['{path}']\nparameters = { path = {} }",
        "tools[0]: the program, the first word of the command, can't come from the model",
    ),
    (
        "[[tools]]\nname = 'x'\ndescription = 'x'\ncommand = ['{a}']\nparameters = { a = { typ = 'x' } }",
        "tools[0].parameters.a.typ: unknown field; did you mean type?",
    ),
    ("[mcp.x]\nenv = { A = 'b' }", "mcp.x: a server has either a command or a url"),
    ("[mcp.x]\nurl = 'http://x'\nheader = {}", "mcp.x.header: unknown field; did you mean headers?"),
    ("[mcp.x]\nurl = 'rm -rf x'", "mcp.x: a url begins with https:// or http://, not 'rm -rf x'"),
    ("[mcp.x]\nurl = 'http://'", "mcp.x: 'http://' has no host"),
    ("[mcp.'a b']\ncommand = ['x']", "mcp.a b: the name 'a b' of an MCP server: write 1 to 32 letters"),
    ("[code]\ncontext_limit = 'big'", "code.context_limit: got 'big'; input should be a valid integer"),
    ("add_dirs = '../x'", """add_dirs: got '../x'; expected a list, such as ["../x"]"""),
    (
        "[code]\ntest_command = 'npm test'",
        """code.test_command: got 'npm test'; expected a list, such as ["npm", "test"]""",
    ),
    ("[code]\ntest_command = []", "code.test_command: got []; expected a list that isn't empty"),
    ("test_command = ['make']", "test_command: unknown field; it belongs under [code]"),
    ("x = " + "[" * 51, "tables or arrays are nested more than 50 levels deep at line 1"),
    ("#" * 256_001, "over 256 kB, which no such file needs"),
    ("a." * 40_000 + "a = 1", "a key has more than 20 parts at line 1"),
    ("[code]\ncontext_limit = " + "1" * 4301, "an integer has at most 64 bits"),
    (f"[policy]\nprofile = '{'x' * 100_000}'", "policy.profile: got 'xxxx"),
    ("".join(f"k{number} = 1\n" for number in range(1000)), "990 more invalid fields"),
    (
        "[[policy.rules]]\naction = 'deny'\ncommand = 'ls'\nmatches = [" + "'ls'," * 1001 + "]",
        "1,001 examples of 2,002 characters in all; at most 1,000 of 30,000 are checked",
    ),
    (
        "[[policy.rules]]\naction = 'deny'\ncommand = 'ls'\nmatches = ['" + "ls;" * 10_001 + "']",
        "1 examples of 30,003 characters in all",
    ),
]


@pytest.mark.parametrize(("text", "words"), BAD, ids=[words for _, words in BAD])
def test_a_damaged_file_is_one_line_and_every_call_is_asked_about(workspace, text, words):
    path = workspace / "ferrule.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SettingsError) as caught:
        read_project_file(path)
    assert words in str(caught.value)
    project = load_project(workspace)
    (problem,) = project.problems
    assert problem.startswith(str(path))
    assert len(problem) < 3000
    assert "\n" not in problem
    assert problem.endswith("; mend the file, or move it away")
    assert project.notices == (f"{problem}; until then every call is asked about",)
    with pytest.raises(SettingsError, match="nothing runs without its rules"):
        project.check_readable()
    policy = project.make_policy(Policy((Rule("allow"),), "all"), always=(Rule("allow"),))
    assert judge(policy, "make") == "ask"
    assert judge(policy, "ls", kind="read") == "ask"  # it may have denied this, too
    assert judge(project.make_policy(profile="plan"), "make") == "deny"
    assert (project.tools, project.servers, project.list_untrusted()) == ((), {}, [])
    with pytest.raises(SettingsError, match=r"no ferrule\.toml here that can be trusted"):
        project.trust()


def test_a_damaged_file_of_the_user_is_read_as_strictly(tmp_path, workspace):
    write_user(tmp_path, "[policy")
    (workspace / "ferrule.toml").write_text('[[policy.rules]]\naction = "deny"\ncommand = "rm"')
    project = load_project(workspace)
    assert len(project.problems) == 1
    policy = project.make_policy(profile="all")
    assert (judge(policy, "make"), judge(policy, "rm x")) == ("ask", "deny")


def test_no_always_counts_beside_a_damaged_file(workspace):
    (workspace / "ferrule.toml").write_text("[policy")
    policy = load_project(workspace).make_policy(grants=SessionGrants())
    policy = policy.with_always(derive_always(BASH, Intent((Effect("run", "make", ("make",)),)), trusted=True))
    assert judge(policy, "make") == "ask"


def test_rules_of_the_user_stay_beside_a_given_policy(tmp_path, workspace):
    write_user(
        tmp_path,
        '[[policy.rules]]\ncommand = "git push"\naction = "deny"\n[[policy.rules]]\ncommand = "ls"\naction = "allow"',
    )
    policy = load_project(workspace).make_policy(Policy((Rule("allow", command="git"),)))
    assert [judge(policy, command) for command in ("git push", "git pull", "ls")] == ["deny", "allow", "ask"]


def test_files_up_to_the_root_of_the_repository_tighten(workspace):
    (workspace / ".git").mkdir()
    (workspace / "ferrule.toml").write_text(
        '[[policy.rules]]\ncommand = "git push"\naction = "deny"\n[[policy.rules]]\ncommand = "ls"\naction = "allow"'
    )
    inner = workspace / "src" / "deep"
    inner.mkdir(parents=True)
    (inner / "ferrule.toml").write_text('[[policy.rules]]\ncommand = "git"\naction = "allow"')
    load_project(workspace).trust()
    policy = load_project(inner).trust().make_policy()
    assert [judge(policy, command) for command in ("git push", "git pull", "ls")] == ["deny", "allow", "ask"]
    (workspace / "ferrule.toml").write_text("[policy")
    assert load_project(inner).problems
    (workspace / ".git").rmdir()  # without a repository, nobody says where the project ends
    assert load_project(inner).problems == ()


def test_a_record_of_trust_that_cannot_be_read_trusts_nothing_and_keeps_the_rules(tmp_path, workspace):
    (workspace / "ferrule.toml").write_text(WHOLE)
    load_project(workspace).trust()
    (tmp_path / "data" / "ferrule" / "trust.json").write_text("{")
    project = load_project(workspace)
    assert project.problems == ()
    (notice,) = project.notices
    assert notice.endswith(f"until then {workspace / 'ferrule.toml'} is not trusted")
    assert judge(project.make_policy(), "git push") == "deny"
    assert judge(project.make_policy(), "npm test") == "ask"


def test_what_is_no_file_does_not_block(workspace):
    os.mkfifo(workspace / "ferrule.toml")
    assert "not a regular file" in load_project(workspace).problems[0]
    (workspace / "ferrule.toml").unlink()
    (workspace / "ferrule.toml").symlink_to("nowhere")
    assert "No such file" in load_project(workspace).problems[0]
    (workspace / "ferrule.toml").unlink()
    (workspace / "ferrule.toml").mkdir()
    assert "not a regular file" in load_project(workspace).problems[0]


def test_the_users_own_file_is_not_a_project_in_its_folder(tmp_path):
    write_user(tmp_path, '[[policy.rules]]\naction = "allow"\ncommand = "make"')
    project = load_project(tmp_path / "config" / "ferrule")
    assert project.own is None
    assert judge(project.make_policy(), "make") == "allow"
