"""Rules, profiles, origins: what a policy says of a call."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.errors import PolicyError, PolicyWarning
from ferrule.execution import Executor, Policy, Rule, SessionGrants, parse_policy, read_policy
from ferrule.execution.always import derive_always
from ferrule.tools.decorator import tool
from ferrule.tools.intent import Effect, Intent
from ferrule.tools.registry import BoundRegistry, ToolRegistry
from ferrule.toolspec import Annotations, ToolSpec
from tables import each_case


def spec(name="edit", origin="code", approval=None, **hints):
    return ToolSpec(name, "", {}, Annotations(**hints), origin, approval)


def action(policy, tool=None, intent=None, /, **arguments):
    return policy.judge(tool or spec(), arguments, intent).action


def does(*effects):
    return Intent(tuple(Effect(kind, target) for kind, target in effects))


def test_the_default_goes_by_origin():
    policy = Policy()
    assert action(policy, spec()) == "allow"
    for origin in ("project", "plugin", "mcp:there"):
        assert action(policy, spec(origin=origin)) == "ask"
        # It says of itself that it reads only, and nobody trusts it.
        assert action(policy, spec(origin=origin, read_only=True)) == "ask"
        reason = policy.judge(spec(origin=origin, read_only=True), {}).reason
        assert "edit, whose read_only isn't trusted: " in reason
        assert reason.endswith(f'set trusted = ["{origin}"] in the policy')
        assert ("name its file" in reason) == (origin == "project")
        assert "isn't known to be read-only" in policy.judge(spec(origin=origin), {}).reason
        trusted = Policy(trusted=(origin,))
        assert action(trusted, spec(origin=origin, read_only=True)) == "allow"
        assert action(trusted, spec(origin=origin)) == "ask"


@each_case(
    ("profile", "tool", "intent", "wanted"),
    [
        ("plan", spec(read_only=True), None, "allow"),
        ("plan", spec(), None, "deny"),
        ("plan", spec(), does(("read", "a")), "allow"),
        ("plan", spec(read_only=True), does(("read", "a"), ("write", "a")), "deny"),
        ("ask", spec(read_only=True), None, "allow"),
        ("ask", spec(), None, "ask"),
        ("ask", spec(), does(("write", "a")), "ask"),
        ("ask", spec(read_only=True), does(("net", "example.org")), "allow"),
        ("ask", spec(), does(("net", "example.org")), "ask"),
        ("accept-edits", spec(), does(("write", "a")), "allow"),
        ("accept-edits", spec(), does(("write", "a"), ("run", "make")), "ask"),
        ("accept-edits", spec(origin="plugin"), does(("write", "a")), "ask"),
        ("accept-edits", spec(), None, "ask"),
        ("auto", spec(), does(("run", "make")), "allow"),
        ("auto", spec(destructive=True), None, "ask"),
        ("auto", spec(origin="plugin", destructive=False), None, "ask"),
        ("all", spec(origin="mcp:there", destructive=True), does(("run", "make")), "allow"),
    ],
)
def test_profiles(profile, tool, intent, wanted):
    assert action(Policy(profile=profile), tool, intent) == wanted


@pytest.mark.parametrize("order", list(itertools.permutations(["allow", "ask", "deny"])))
def test_deny_goes_before_ask_before_allow_in_any_order(order):
    rules = tuple(Rule(one) for one in order)
    assert action(Policy(rules)) == "deny"
    assert action(Policy(tuple(rule for rule in rules if rule.action != "deny"))) == "ask"


RULES = st.builds(
    Rule,
    st.sampled_from(["allow", "ask", "deny"]),
    st.sampled_from(["*", "edit", "ed*", "other"]),
    st.dictionaries(st.sampled_from(["read_only", "destructive"]), st.booleans()),
    st.dictionaries(st.sampled_from(["path", "*"]), st.sampled_from(["*", "a*", "b"])),
    st.sampled_from([None, "read", "write"]),
    st.sampled_from([None, "a*", "*"]),
)
TOOLS = st.builds(
    spec,
    origin=st.sampled_from(["code", "mcp:x"]),
    approval=st.sampled_from([None, "always", "never"]),
    read_only=st.sampled_from([None, True, False]),
    destructive=st.sampled_from([None, True, False]),
)
INTENTS = st.one_of(
    st.none(),
    st.builds(
        Intent, st.lists(st.builds(Effect, st.sampled_from(["read", "write"]), st.sampled_from("ab"))).map(tuple)
    ),
)
STRICTNESS = ["allow", "ask", "deny"]


@given(st.lists(RULES, max_size=4), RULES, TOOLS, INTENTS, st.randoms())
def test_neither_order_nor_one_deny_more_loosens(rules, more, tool, intent, random):
    arguments = {"path": "a"}
    verdict = Policy(tuple(rules)).judge(tool, arguments, intent)
    shuffled = list(rules)
    random.shuffle(shuffled)
    assert Policy(tuple(shuffled)).judge(tool, arguments, intent).action == verdict.action
    denying = Rule("deny", more.tool, more.annotations, more.arguments, more.effect, more.target)
    stricter = Policy((*rules, denying)).judge(tool, arguments, intent)
    assert STRICTNESS.index(stricter.action) >= STRICTNESS.index(verdict.action)


@given(st.sampled_from(["plan", "ask", "accept-edits", "auto"]), st.lists(RULES, max_size=3), TOOLS, INTENTS)
def test_what_an_untrusted_tool_says_of_itself_never_loosens(profile, rules, tool, intent):
    policy = Policy(tuple(rules), profile)
    silent = policy.judge(spec(origin="mcp:x"), {"path": "a"}).action
    said = policy.judge(replace(tool, origin="mcp:x"), {"path": "a"}, intent).action
    assert STRICTNESS.index(said) >= STRICTNESS.index(silent)


def test_rules_on_names_annotations_and_arguments():
    rule = Rule("deny", "ed*", {"destructive": True}, {"path": "*.env"}, reason="secrets stay")
    policy = Policy((rule,))
    verdict = policy.judge(spec(), {"path": "prod.env"})
    assert (verdict.action, verdict.reason, verdict.by) == ("deny", "secrets stay", "rule")
    assert action(policy, spec(), path="a.txt") == "allow"
    assert action(policy, spec("read"), path="prod.env") == "allow"
    assert action(policy, spec(destructive=False), path="prod.env") == "allow"
    assert action(policy, spec(origin="mcp:x", destructive=False), path="prod.env") == "deny"


def test_arguments_are_matched_as_text_and_lists_by_element():
    deny = Policy((Rule("deny", arguments={"*": "secret*"}),))
    assert action(deny, None, paths=["a", "secret.txt"]) == "deny"
    assert action(deny, None, path="a") == "allow"
    allow = Policy((Rule("allow", arguments={"paths": "src/*"}),), "ask")
    assert action(allow, None, paths=["src/a", "src/b"]) == "allow"
    assert action(allow, None, paths=["src/a", "/etc/passwd"]) == "ask"
    assert action(allow, None) == "ask"
    assert action(Policy((Rule("deny", arguments={"force": "true"}),)), None, force=True) == "deny"
    assert action(Policy((Rule("deny", arguments={"count": "1?"}),)), None, count=12) == "deny"


def test_each_effect_is_judged_by_itself():
    policy = Policy((Rule("allow", effect="read"), Rule("allow", effect="write", target="src/*")), "ask")
    assert action(policy, None, does(("read", "/etc/hosts"), ("write", "src/a.py"))) == "allow"
    assert action(policy, None, does(("read", "/etc/hosts"), ("write", "setup.py"))) == "ask"
    assert action(policy, None, does(("write", "src/../setup.py"))) == "ask"
    assert action(policy, None) == "ask"
    untrusted = spec(origin="plugin")
    assert action(policy, untrusted, does(("write", "src/a.py"))) == "ask"


def test_a_tools_own_word():
    assert action(Policy(), spec(approval="always")) == "ask"
    assert action(Policy(profile="all"), spec(origin="mcp:x", approval="always")) == "ask"
    assert action(Policy((Rule("allow"),)), spec(approval="always")) == "ask"
    assert Policy((Rule("ask"),)).judge(spec(approval="always"), {}).by == "rule"
    assert action(Policy(profile="plan"), spec(approval="always")) == "deny"
    assert action(Policy(profile="ask"), spec(approval="never")) == "allow"
    assert action(Policy(profile="plan"), spec(approval="never")) == "deny"
    assert action(Policy((Rule("ask"),)), spec(approval="never")) == "ask"
    assert action(Policy(), spec(origin="mcp:x", approval="never")) == "ask"
    assert action(Policy(trusted=("mcp:*",)), spec(origin="mcp:x", approval="never")) == "allow"


def test_an_intent_that_asks_is_asked_for_where_the_tool_is_allowed():
    asking = Intent((Effect("write", ".git"),), asks=True)
    assert action(Policy(), spec(), asking) == "ask"
    assert action(Policy((Rule("allow"),), profile="all"), spec(approval="never"), asking) == "ask"
    assert action(Policy((Rule("deny"),)), spec(), asking) == "deny"
    assert action(Policy(profile="plan"), spec(), asking) == "deny"


def test_an_always_overrides_the_profiles_ask_and_nothing_else():
    tool = spec(origin="mcp:x")
    always = derive_always(tool, None, trusted=False)
    assert always.scope == "every call of edit as the server defines it now"
    assert action(Policy().with_always(always), tool) == "allow"
    assert action(Policy().with_always(always), spec("edit_all", origin="mcp:x")) == "ask"
    assert action(Policy((Rule("ask"),)).with_always(always), tool) == "ask"
    assert action(Policy((Rule("deny"),)).with_always(always), tool) == "deny"
    assert action(Policy(profile="plan").with_always(always), tool) == "deny"
    assert action(Policy().with_always(always), spec(origin="mcp:x", approval="always")) == "ask"


def test_a_policy_from_a_file(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(
        """
        profile = "accept-edits"
        trusted = ["project"]

        [[rules]]
        tool = "bash"
        arguments = { command = "rm *" }
        action = "deny"
        reason = "move files to the bin instead"

        [[rules]]
        effect = "net"
        annotations = { read_only = false }
        action = "ask"
        """
    )
    policy = read_policy(path)
    assert (policy.profile, policy.trusted) == ("accept-edits", ("project",))
    assert policy.rules == (
        Rule("deny", "bash", arguments={"command": "rm *"}, reason="move files to the bin instead"),
        Rule("ask", annotations={"read_only": False}, effect="net"),
    )
    assert parse_policy({}) == Policy()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"profile": "yolo"}, "policy: profile: got 'yolo'; input should be 'plan', 'ask'"),
        ({"rules": [{"tool": "x"}]}, "policy: rules[0].action: is missing; add it"),
        ({"rules": [{"action": "permit"}]}, "policy: rules[0].action: got 'permit'; input should be 'allow', 'ask'"),
        ({"rules": [{"action": "deny", "tools": "x"}]}, "policy: rules[0].tools: unknown field; did you mean tool?"),
        ({"rules": [{"action": "deny", "annotations": {"readonly": True}}]}, "policy: rules[0].annotations.readonly"),
        ({"trusted": "project"}, "policy: trusted: got 'project'; expected a list, such as [\"project\"]"),
    ],
)
def test_a_wrong_policy_names_the_field(data, words):
    with pytest.raises(PolicyError) as caught:
        parse_policy(data)
    assert words in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(PolicyError, match=r"^[^:]*/none\.toml: can't be read: No such file or directory$"):
        read_policy(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("profile = ")
    with pytest.raises(PolicyError, match=r"broken\.toml: not TOML"):
        read_policy(broken)


@each_case(
    ("make", "words"),
    [
        (lambda: Rule("dney"), "a rule's action must be one of 'allow', 'ask', 'deny', not 'dney'"),
        (lambda: Rule("deny", effect="wirte"), "a rule's effect must be one of 'read', 'write', 'run', 'net'"),
        (lambda: Rule("deny", annotations={"readonly": True}), "an annotation of a rule must be one of 'read_only'"),
        (lambda: Rule("deny", arguments={"count": 12}), "'count' of a rule must be text, not 12"),
        (lambda: Rule("deny", ""), "a rule's tool must be a name or a pattern of names, not ''"),
        (lambda: Rule("deny", ["bash"]), "'tool' of a rule must be text, not ['bash']"),
        (lambda: Policy(profile="yolo"), "the profile must be one of 'plan', 'ask', 'accept-edits', 'auto', 'all'"),
        (lambda: Policy("ask"), "rules must be rules, not 'ask'; pass a profile as Policy(profile='ask')"),
        (lambda: Policy(("deny",)), "rules must contain only Rule(...), not 'deny'"),
        (lambda: Policy(Rule("deny")), "rules must be a tuple of rules, not one rule; pass (Rule("),
        (lambda: Policy(trusted="project"), "trusted must be a tuple of patterns of origins, not 'project'"),
        (lambda: Executor(BoundRegistry([]), policy="ask"), "policy must be a Policy, not 'ask'"),
    ],
)
def test_what_can_not_be_is_refused_when_it_is_made(make, words):
    with pytest.raises(PolicyError) as caught:
        make()
    assert words in str(caught.value)


def test_rules_may_be_given_as_a_list():
    assert Policy([Rule("deny")]).rules == (Rule("deny"),)


@tool
def edit(path: str, mode: str = "replace") -> str:
    """Edit."""
    return path


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (Rule("deny", "edti"), "the rule deny for 'edti' matches no tool; did you mean edit?"),
        (Rule("deny", "edit_*"), "the rule deny for 'edit_*' matches no tool; did you mean edit?"),
        (
            Rule("allow", "ed*", arguments={"file": "*"}),
            "the rule allow for 'ed*': no matching tool has an argument 'file'",
        ),
        (Rule("deny", arguments={"file": "*"}), "the rule deny for '*': no matching tool has an argument 'file'"),
        (Rule("deny", "edit", arguments={"path": "*", "mode": "*", "*": "*"}), None),
        (Rule("deny"), None),
    ],
)
def test_a_rule_that_names_what_is_not_on_offer_is_told_once_the_tools_are_known(rule, problem):
    policy, tools = Policy((rule,)), BoundRegistry([edit])
    assert policy.find_unused(tools) == ([] if problem is None else [problem])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Executor(tools, policy=policy)
    assert [str(one.message) for one in caught if one.category is PolicyWarning] == (
        [] if problem is None else [problem]
    )


def test_the_grants_of_a_session_hold_in_every_run_and_for_every_policy_made_of_it():
    grants = SessionGrants()
    policy = Policy(profile="ask", grants=grants)
    always = derive_always(spec(), None, trusted=True)
    assert policy.with_always(always) is policy
    policy.with_always(always)
    assert grants.rules == (Rule("allow", "edit"),)
    assert action(policy) == "allow"
    assert action(replace(policy, trusted=("project",))) == "allow"
    assert action(Policy(profile="ask")) == "ask"
    assert action(Policy((Rule("ask"),), grants=grants)) == "ask"
    assert action(Policy(profile="plan", grants=grants)) == "deny"


@pytest.mark.parametrize(
    "change",
    [
        lambda registry: registry.prefixed("gh_"),
        lambda registry: registry.renamed({"edit": "change"}),
        lambda registry: registry.prefixed("gh_").renamed({"gh_edit": "look"}).prefixed("x_"),
    ],
)
def test_a_deny_or_an_ask_by_name_follows_a_tool_to_its_new_name_and_an_allow_does_not(change):
    (renamed,) = change(ToolRegistry([edit])).tools
    assert renamed.name != "edit"
    assert action(Policy((Rule("deny", "edit"),)), renamed) == "deny"
    assert action(Policy((Rule("ask", "ed*"),)), renamed) == "ask"
    assert action(Policy((Rule("allow", "edit"),), "ask"), renamed) == "ask"
    assert action(Policy((Rule("allow", renamed.name),), "ask"), renamed) == "allow"
    assert Policy((Rule("deny", "edit"),)).find_unused([renamed]) == []
