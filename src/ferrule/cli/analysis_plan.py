"""Shows a plan before anything runs, to approve it, change it in an editor, or refuse it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ferrule.errors import SettingsError

if TYPE_CHECKING:
    from ferrule.analysis.plan import Plan

_QUESTION = "Run this plan? [y]es, [e]dit, [n]o: "
_HELP = """\
# Change, add or remove tasks. Each has an id (t1, t2, …), the tool that does it, what it is asked, and the ids of the
# tasks whose results it needs. Saved without any task, the plan is refused.
"""


async def ask_about_plan(plan: Plan, check: Callable[[Plan], list[str]]) -> Plan | None:
    """Ask about a plan at the terminal until the answer is clear; None if it is refused.

    `check` says what is wrong with an edited one. Raises `SettingsError` where nobody can be asked.
    """
    from ferrule.cli.analysis_progress import describe_plan
    from ferrule.session.approvals import is_interactive

    if not is_interactive():
        raise SettingsError("--plan asks before the plan runs, and nobody can be asked here; leave it out")
    draft = write_plan(plan)
    while True:
        print("\n".join(describe_plan(plan)), file=sys.stderr)
        print(_QUESTION, end="", file=sys.stderr, flush=True)
        line = await _read_line()
        answer = line.strip().casefold()
        if answer in ("y", "yes"):
            return plan
        if not line or answer in ("n", "no"):
            return None
        if answer in ("e", "edit"):
            draft, edited = await _edit_plan(draft, check)
            plan = edited or plan
            if not plan.tasks:
                return None


async def _read_line() -> str:
    """Read a line of stdin, in a thread that Ctrl-C ends too."""
    from ferrule.session.approvals import AnswerInput

    lines = AnswerInput()
    try:
        return await asyncio.to_thread(lines.readline)
    except asyncio.CancelledError:
        lines.withdraw()
        raise


async def _edit_plan(draft: str, check: Callable[[Plan], list[str]]) -> tuple[str, Plan | None]:
    """Let a person edit a plan; returns the text, and the plan unless it can't run, which is said with the reason."""
    from ferrule.session.terminal.output import print_notice
    from ferrule.session.terminal.programs import edit_text, find_editor

    try:
        draft = await edit_text(find_editor(), draft, "plan.toml")
        edited = parse_plan(draft)
    except SettingsError as error:
        print_notice(str(error))
        return draft, None
    problems = check(edited) if edited.tasks else []
    if problems:
        print_notice(f"the plan can't run: {' '.join(problems)} Your text is kept: [e]dit goes on with it.")
        return draft, None
    return draft, edited


def write_plan(plan: Plan) -> str:
    """A plan as TOML, for an editor."""
    parts = [_HELP, f"approach = {_quote(plan.approach)}\n"]
    for task in plan.tasks:
        needs = ", ".join(map(_quote, task.needs))
        parts.append(
            f"\n[[tasks]]\nid = {_quote(task.id)}\ntool = {_quote(task.tool)}\nneeds = [{needs}]\n"
            f"query = {_quote(task.query)}\n"
        )
    return "".join(parts)


def parse_plan(text: str) -> Plan:
    """Read a plan that `write_plan` wrote and a person changed. Raises `SettingsError`."""
    from pydantic import ValidationError

    from ferrule._util.invalid_fields import describe_invalid_fields
    from ferrule._util.toml_text import parse_toml
    from ferrule.analysis.plan import Plan

    try:
        return Plan.model_validate(parse_toml(text.encode()))
    except ValidationError as error:
        raise SettingsError(
            f"the plan can't be read: {describe_invalid_fields(error)}; [e]dit goes on with it"
        ) from error
    except ValueError as error:
        raise SettingsError(f"the plan can't be read: {error}; [e]dit goes on with your text") from error


def _quote(text: str) -> str:
    import json

    # A JSON string is a TOML string, but for characters that JSON may leave as they are.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
