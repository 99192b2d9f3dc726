"""Whatever a project's file says: untrusted it loosens nothing, and trusted no rule of the user."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ferrule.execution import Policy, Rule
from ferrule.execution.policy_file import PolicyData, RuleData
from ferrule.execution.rules import STRICTNESS
from ferrule.session.project import Project, SettingsFile
from ferrule.session.project_file import ProjectSettings
from ferrule.tools.intent import Effect, Intent
from ferrule.toolspec import Annotations, ToolSpec

WORKSPACE = Path("/nowhere/workspace")
PROFILES = st.sampled_from([None, "plan", "ask", "accept-edits", "auto", "all"])
COMMANDS = st.sampled_from([None, "git", "git status", "git push", "*", "make"])
ACTIONS = st.sampled_from(["allow", "ask", "deny"])
TOOLS = st.builds(
    lambda origin, hint: ToolSpec("bash", "", {}, Annotations(read_only=hint), origin),
    st.sampled_from(["code", "project", "mcp:x"]),
    st.sampled_from([None, True]),
)
EFFECTS = st.builds(
    Effect,
    st.sampled_from(["read", "write", "run", "net"]),
    st.sampled_from([f"{WORKSPACE}/a", "/etc/a", "x"]),
    st.sampled_from([(), ("git", "status"), ("git", "push"), ("/bin/make",)]),
    st.booleans(),
)
INTENTS = st.none() | st.builds(Intent, st.lists(EFFECTS, max_size=3).map(tuple))
USERS = st.builds(
    lambda rules, profile: Policy(tuple(rules), profile),
    st.lists(st.builds(lambda action, command: Rule(action, command=command), ACTIONS, COMMANDS), max_size=2),
    PROFILES,
)
PROJECTS = st.builds(
    lambda rules, profile, trusted: ProjectSettings(policy=PolicyData(rules=rules, profile=profile, trusted=trusted)),
    st.lists(
        st.builds(
            lambda action, command, effect: RuleData(action=action, command=command, effect=effect),
            ACTIONS,
            COMMANDS,
            st.sampled_from([None, "read", "write", "run"]),
        ),
        max_size=3,
    ),
    PROFILES,
    st.sampled_from([[], ["*"]]),
)


def judge(policy, tool, intent):
    return STRICTNESS[policy.judge(tool, {}, intent, WORKSPACE).action]


def make_project(settings, is_trusted):
    path = WORKSPACE / "ferrule.toml"
    return Project(WORKSPACE, None, SettingsFile(path, settings, "", is_trusted))


@given(PROJECTS, USERS, PROFILES, TOOLS, INTENTS)
def test_an_untrusted_project_loosens_nothing(settings, user, profile, tool, intent):
    alone = Project(WORKSPACE).make_policy(user, profile)
    policy = make_project(settings, is_trusted=False).make_policy(user, profile)
    assert judge(policy, tool, intent) >= judge(alone, tool, intent)


@given(PROJECTS, USERS, PROFILES, TOOLS, INTENTS)
def test_a_trusted_project_loosens_no_deny_and_no_ask_of_a_rule(settings, user, profile, tool, intent):
    alone = Project(WORKSPACE).make_policy(user, profile)
    settings.policy.trusted.clear()
    policy = make_project(settings, is_trusted=True).make_policy(user, profile)
    before = alone.judge(tool, {}, intent, WORKSPACE)
    if before.action == "deny" or before.by == "rule":
        assert judge(policy, tool, intent) >= STRICTNESS[before.action]


@given(PROJECTS, USERS, PROFILES, TOOLS, INTENTS)
def test_a_damaged_file_beside_is_as_strict_as_asking(settings, user, profile, tool, intent):
    damaged = Project(
        WORKSPACE,
        SettingsFile(Path("/nowhere/ferrule.toml"), problem="damaged"),
        SettingsFile(WORKSPACE / "ferrule.toml", settings, "", is_trusted=False),
    )
    policy = damaged.make_policy(user, profile)
    asking = Project(WORKSPACE).make_policy(Policy(profile="ask"))
    assert judge(policy, tool, intent) >= judge(asking, tool, intent)
