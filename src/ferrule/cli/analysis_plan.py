"""What comes before an analysis: the check of its order, and its plan, to approve, change in an editor, or refuse."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.errors import SettingsError

if TYPE_CHECKING:
    from ferrule.analysis.plan import Plan
    from ferrule.cli.analysis_run import AnalysisFiles, AnalysisOrder

_PACKAGES = (
    "pandas", "matplotlib", "charset_normalizer", "duckdb", "friendly_traceback", "fsspec", "openpyxl",
    "pyarrow", "Stemmer", "sklearn", "scipy", "statsmodels",
)  # fmt: skip
"""What the extra `analysis` installs, by the names of the modules."""
_HOSTED = "httpx2"


def check_order(order: AnalysisOrder) -> None:
    """Raise `SettingsError` or `DataError` for what would fail only after models were paid."""
    check_output_files(order.files, order.data)
    if order.files.replay is not None:
        return
    if order.data:
        from ferrule.analysis.data.sources import check_sources, make_sources

        check_sources(make_sources(order.data))
    _check_packages(order)


def _check_packages(order: AnalysisOrder) -> None:
    from ferrule.models.providers import PROVIDERS

    missing = [name for name in _PACKAGES if find_spec(name) is None]
    extras = ["analysis"] if missing else []
    names = (order.options.model, order.options.fallback, *order.settings.models.values())
    providers = {name.partition(":")[0] for name in names if isinstance(name, str)}
    if order.files.taken is None and providers & set(PROVIDERS) and find_spec(_HOSTED) is None:
        missing.append(_HOSTED)
        extras.append("hosted")
    if missing:
        raise SettingsError(
            f"this needs {', '.join(missing)}; install it with: pip install 'ferrule[{','.join(extras)}]'"
        )


def check_output_files(files: AnalysisFiles, data: Sequence[str]) -> None:
    """Raise `SettingsError` for a report or notebook that would overwrite data, a recording or the other one."""
    from ferrule.analysis.data.sources import parse_data_argument
    from ferrule.analysis.recording.differences import list_data_files

    read = [(parse_data_argument(one)[1], "a file of --data") for one in data]
    named = ((files.replay, "--replay"), (files.rerun, "--rerun"), (files.continues, "--continue"))
    read += [(path, f"the recording of {option}") for path, option in (*named, (files.record, "--record")) if path]
    read += [(file, f"a data file of {path}") for path, _ in named if path for file in list_data_files(path)]
    for option, path in _list_outputs(files):
        if path.is_dir():
            raise SettingsError(f"{option} {path}: it is a folder; name a file in it")
        for other, what in read:
            if _is_same(path, other):
                raise SettingsError(f"{option} {path}: it is {what}, which would be overwritten; name another file")
        read.append((path, f"the file of {option}"))
    if files.record is not None:
        _check_record(files.record, [path for path, _ in read[: len(data)]])


def _check_record(record: Path, data: Iterable[Path]) -> None:
    if any(_is_same(record, path) for path in data):
        raise SettingsError(f"--record {record}: it is a file of --data; name another file")


def _list_outputs(files: AnalysisFiles) -> Iterator[tuple[str, Path]]:
    if files.report is not None:
        yield "--report", files.report
    if files.notebook is not None:
        yield "--notebook", files.notebook


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.resolve() == other.resolve() or (path.exists() and other.exists() and path.samefile(other))
    except (OSError, RuntimeError):
        return False


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
