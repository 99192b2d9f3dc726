"""What `ferrule policy explain` prints: the verdict on a call with its reasons, or on the calls of a journal."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import typer

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line
from ferrule.errors import SettingsError

if TYPE_CHECKING:
    from ferrule.execution import Policy, Rule, Verdict
    from ferrule.execution.explain import ExplainedEffect, Explanation, JournalVerdicts, JudgedCall
    from ferrule.execution.profiles import Profile
    from ferrule.tools.decorator import Tool

_SAYS = {"allow": "allowed", "ask": "asked about", "deny": "denied"}
_MOST_CALLS = 50
_MOST_CHARACTERS = 200


def make_policy_in_force(file: Path | None, profile: str | None, with_project: bool) -> Policy:
    """The policy of the coding agent in this folder. Raises `PolicyError` and `SettingsError`."""
    from ferrule.execution import read_policy
    from ferrule.execution.profiles import Profile
    from ferrule.session.project import Project, load_project
    from ferrule.session.saved_rules import load_saved_rules
    from ferrule.session.terminal.output import print_notice

    if profile is not None and profile not in get_args(Profile):
        raise SettingsError(f"--profile must be one of {', '.join(get_args(Profile))}, not {profile!r}")
    project = load_project(Path())
    if not with_project:
        project = Project(project.workspace, project.user)
    for notice in project.notices:
        print_notice(notice)
    if project.own is not None and project.list_untrusted():
        print_notice(f"{project.own.path} is not trusted: it only tightens; see `ferrule policy trust`")
    given = read_policy(file) if file is not None else None
    saved = load_saved_rules(project.workspace) if with_project else ()
    return project.make_policy(given, cast("Profile | None", profile), saved)


def explain_call(
    command: str | None, name: str | None, arguments: str, paths: Iterable[Path], policy: Policy, as_json: bool
) -> int:
    """Print the verdict on a call; returns the exit status. Raises `SettingsError` and `ArgumentsInvalid`."""
    from ferrule.execution.explain import explain_tool_call
    from ferrule.session.terminal.output import print_json

    tool = _find_tool(name or "bash", paths)
    text = arguments if command is None else json.dumps({"command": command})
    explanation = asyncio.run(explain_tool_call(policy, tool, text, Path.cwd()))
    if as_json:
        print_json(_explanation_to_json(tool, explanation))
    else:
        for line in (*_format_explanation(tool, explanation), *_format_problem(command)):
            typer.echo(escape_line(line))
    return 0 if explanation.verdict.action == "allow" else 1


def explain_journal(path: Path, policy: Policy, as_json: bool) -> int:
    """Print what `policy` says of the recorded calls; returns the exit status.

    Raises `SettingsError` for a file that is no journal, and `OSError`.
    """
    from ferrule.execution.explain import judge_journal
    from ferrule.execution.journal import read_entries
    from ferrule.session.terminal.output import print_json

    entries = read_entries(path)
    if path.stat().st_size and not any("event" in entry and "key" in entry for entry in entries):
        raise SettingsError(
            f"{path}: not a journal: no line in it records a call; --journal FILE of a command writes one"
        )
    judged = judge_journal(entries, policy, Path.cwd())
    changed = [call for call in judged.calls if call.is_changed]
    if as_json:
        print_json(_journal_to_json(judged, changed))
    else:
        for line in _format_journal(judged, changed):
            typer.echo(escape_line(line))
    return 1 if changed else 0


def check_files(files: Iterable[Path], paths: Iterable[Path]) -> None:
    """Check files of rules, and print what was found. Raises `PolicyError` and `SettingsError` for a wrong one."""
    from ferrule.cli.tool_sources import collect_tools, load_coding_tools
    from ferrule.execution import read_policy
    from ferrule.execution.policy_file import make_policy
    from ferrule.session.project_file import FILE_NAME, read_project_file
    from ferrule.session.terminal.output import print_notice

    policies = {
        path: make_policy(read_project_file(path)[1].policy, str(path), "policy.")
        if path.name == FILE_NAME
        else read_policy(path)
        for path in files
    }
    tools = collect_tools(paths).add(load_coding_tools()).tools if any(one.rules for one in policies.values()) else ()
    for path, policy in policies.items():
        unused = policy.find_unused(tools)
        for problem in unused:
            print_notice(f"{path}: {problem}")
        found = pluralize(len(unused), "warning") if unused else "no problems"
        typer.echo(f"{path}: {pluralize(len(policy.rules), 'rule')}, {found}")


def _find_tool(name: str, paths: Iterable[Path]) -> Tool:
    from ferrule import coding
    from ferrule.cli.tool_sources import collect_tools, load_coding_tools
    from ferrule.tools.registry import find_nearest_names

    registry = collect_tools(paths).add(coding.tools())
    found = {tool.name: tool for tool in registry.tools}
    if name not in found:
        found |= {tool.name: tool for tool in load_coding_tools()}
    if name not in found:
        near = find_nearest_names(name, found)
        advice = f"the nearest: {', '.join(near)}" if near else f"there are {', '.join(found)}"
        raise SettingsError(f"no tool is named {name!r}; {advice}; --tools adds others")
    return found[name]


def _format_explanation(tool: Tool, explanation: Explanation) -> Iterable[str]:
    verdict = explanation.verdict
    yield f"{tool.name} is {_SAYS[verdict.action]}: {verdict.reason}{_format_source(verdict.rule)}"
    for words, effects in groupby(explanation.effects, key=lambda one: one.effect.words if one.effect else ()):
        if words:
            yield f"  {shlex.join(words)}"
        indent = "    " if words else "  "
        for one in effects:
            yield f"{indent}{_format_effect(one)}"
            others = [rule for rule in one.matching if rule is not one.verdict.rule]
            yield from (f"{indent}  also matches: {_format_rule(rule)}" for rule in others)


def _format_problem(command: str | None) -> Iterable[str]:
    """Why a command line can't be judged."""
    if command is None:
        return
    from ferrule.sandbox.shell.command_line import parse_command_line

    problem = parse_command_line(command, str(Path.cwd())).problem
    if problem is not None:
        yield f"  it can't be judged: {problem}"


def _format_effect(one: ExplainedEffect) -> str:
    effect = one.effect
    what = "anything" if effect is None else f"{effect.kind} {effect.target}"
    is_place = effect is not None and effect.is_protected and effect.kind != "run"
    protected = " (protected)" if is_place else ""
    return f"{what}{protected}: {_format_verdict(one.verdict)}"


def _format_verdict(verdict: Verdict) -> str:
    if verdict.rule is None:
        return f"{_SAYS[verdict.action]} by the {verdict.by}: {verdict.reason}"
    decided = f"{_SAYS[verdict.action]} by the rule {_format_rule(verdict.rule)}"
    # A rule without a reason of its own has been named completely.
    has_reason = verdict.rule.reason or verdict.action != verdict.rule.action
    return f"{decided}: {verdict.reason}" if has_reason else decided


def _format_rule(rule: Rule) -> str:
    from ferrule.session.project import describe_rule

    return f"{rule.action} {describe_rule(rule)}{_format_source(rule)}"


def _format_source(rule: Rule | None) -> str:
    return f" ({rule.source})" if rule is not None and rule.source else ""


def _explanation_to_json(tool: Tool, explanation: Explanation) -> dict[str, Any]:
    effects = [
        {
            "effect": None if one.effect is None else asdict(one.effect),
            **_verdict_to_json(one.verdict),
            "matching": [_rule_to_json(rule) for rule in one.matching],
        }
        for one in explanation.effects
    ]
    return {"tool": tool.name, **_verdict_to_json(explanation.verdict), "effects": effects}


def _verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    rule = None if verdict.rule is None else _rule_to_json(verdict.rule)
    return {"action": verdict.action, "by": verdict.by, "reason": verdict.reason, "rule": rule}


def _rule_to_json(rule: Rule) -> dict[str, Any]:
    return {name: value for name, value in asdict(rule).items() if value not in (None, "", {}, False)}


def _format_journal(judged: JournalVerdicts, changed: list[JudgedCall]) -> Iterable[str]:
    yield f"{pluralize(len(judged.calls), 'recorded call')}, of which {len(changed)} would be decided in another way"
    for (before, now), count in sorted(judged.counts.items()):
        arrow = _SAYS[before] if before == now else f"{_SAYS[before]} → {_SAYS[now]}"
        yield f"  {count:6} {arrow}"
    if judged.skipped:
        yield f"  {judged.skipped:6} not judged: malformed calls, or recorded by an older version"
    for call in changed[:_MOST_CALLS]:
        text = json.dumps(call.arguments, ensure_ascii=False)
        shown = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}… ({len(text):,} characters)"
        yield f"{_SAYS[call.before]} → {_SAYS[call.verdict.action]}: {call.tool} {shown}"
        yield f"  {_format_verdict(call.verdict)}"
    if len(changed) > _MOST_CALLS:
        yield f"… and {len(changed) - _MOST_CALLS} more; --json has all"


def _journal_to_json(judged: JournalVerdicts, changed: list[JudgedCall]) -> dict[str, Any]:
    counts = [{"before": before, "now": now, "calls": count} for (before, now), count in sorted(judged.counts.items())]
    calls = [
        {
            "key": call.key,
            "time": call.time,
            "tool": call.tool,
            "arguments": call.arguments,
            "before": call.before,
            "now": _verdict_to_json(call.verdict),
        }
        for call in changed
    ]
    return {"calls": len(judged.calls), "skipped": judged.skipped, "counts": counts, "changed": calls}
