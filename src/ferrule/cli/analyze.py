"""`ferrule analyze`: a question about data, answered by a plan of tasks whose code runs in the sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferrule.cli.options import Changes, require_parent_folder
from ferrule.cli.session_options import SessionOptions, add_session_options

if TYPE_CHECKING:
    from ferrule.analysis.settings import AnalysisSettings
    from ferrule.cli.analysis_run import AnalysisFiles

_WITHOUT = (
    "system", "attachments", "schema", "mode", "record", "no_tools", "temperature", "seed", "max_tokens", "store",
    "keep", "resume", "continue_last", "cost",
)  # fmt: skip
_LAST = "last"


def run_analyze(  # noqa: PLR0913 - the options of the command
    question: Annotated[
        str | None, typer.Argument(help="What to find out; - reads it from standard input. A recording has its own.")
    ] = None,
    *,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            metavar="[NAME=]FILE",
            help="A table: CSV, Excel, Parquet, JSON lines or SQLite. May be repeated, with names.",
        ),
    ] = None,
    analysis_mode: Annotated[
        str | None, typer.Option("--mode", metavar="MODE", help="quick, balanced (the default), thorough or research.")
    ] = None,
    shows_plan: Annotated[
        bool, typer.Option("--plan", help="Show the plan before anything runs, to approve, edit or refuse it.")
    ] = False,
    share: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT", help="What models are shown of the data: schema, profile (the default) or samples."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=require_parent_folder, help="Write a self-contained page of everything."),
    ] = None,
    notebook: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=require_parent_folder, help="Write a notebook that computes it again."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            callback=require_parent_folder,
            help="Record every answer and run in this file; the default is one in the user's data folder.",
        ),
    ] = None,
    no_record: Annotated[bool, typer.Option("--no-record", help="Record nothing.")] = False,
    replay: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Show a recorded analysis (or the last one): no model, nothing runs."),
    ] = None,
    rerun: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Run the code of a recorded analysis again, and compare what it computes."),
    ] = None,
    continues: Annotated[
        Path | None,
        typer.Option("--continue", metavar="FILE", help="Ask a further question with the results of a recording."),
    ] = None,
    max_cost: Annotated[float | None, typer.Option(metavar="DOLLARS", help="The most that models may cost.")] = None,
    max_seconds: Annotated[float | None, typer.Option(metavar="SECONDS", help="The most time.")] = None,
    max_calls: Annotated[int | None, typer.Option(metavar="N", help="The most requests to models.")] = None,
    max_iterations: Annotated[int | None, typer.Option(metavar="N", help="The most rounds of plans.")] = None,
    changes: Changes = None,
    options: SessionOptions,
) -> None:
    """Answer a question about data by a plan of tasks, with every number traced to the code that computed it.

    Every model answer and run is recorded, for --replay, --rerun and --continue; FILE may be `last` for these. Exit
    status: 0 the answer is complete, 1 it is partial, 2 wrong input, 3 the provider failed, 130 Ctrl-C, with what was
    found until then.
    """
    from ferrule.cli.analysis_run import AnalysisFiles, AnalysisOrder, analyze_and_show

    files = AnalysisFiles(
        record, no_record, _find_recording(replay), _find_recording(rerun), _find_recording(continues), report, notebook
    )
    given = {
        "mode": analysis_mode,
        "share": share,
        "max_cost": max_cost,
        "max_seconds": max_seconds,
        "max_calls": max_calls,
        "max_iterations": max_iterations,
    }
    _check_combination(files, question, data or [], shows_plan)
    settings = _read_settings(changes or [], given)
    order = AnalysisOrder(_read_question(question, files), tuple(data or ()), settings, shows_plan, files, options)
    status = analyze_and_show(order)
    if status:
        raise typer.Exit(status)


analyze = add_session_options(run_analyze, without=_WITHOUT)


def _find_recording(given: Path | None) -> Path | None:
    """The recording of a name; `last` is the newest in the user's folder. Raises `SettingsError` if there is none."""
    from ferrule.analysis.recording.user_folder import find_last_recording

    return find_last_recording() if given is not None and str(given) == _LAST and not given.exists() else given


def _check_combination(files: AnalysisFiles, question: str | None, data: list[str], shows_plan: bool) -> None:
    """Raise `SettingsError` for options that contradict each other."""
    from ferrule.errors import SettingsError

    taken = [name for name in ("replay", "rerun", "continues") if getattr(files, name) is not None]
    if len(taken) > 1:
        first, second = ("continue" if name == "continues" else name for name in taken[:2])
        raise SettingsError(f"--{first} and --{second} can't be used together")
    if files.record is not None and files.no_record:
        raise SettingsError("--record and --no-record can't be used together")
    if files.taken is None:
        return
    option = "--replay" if files.replay is not None else "--rerun"
    if question is not None:
        raise SettingsError(f"{option} has the recorded question; a further one is asked by --continue {files.taken}")
    if shows_plan:
        raise SettingsError(f"{option} and --plan can't be used together: the recorded plan runs")
    if files.replay is not None and data:
        raise SettingsError("--replay reads no data; --rerun computes again with the files of --data")


def _read_question(given: str | None, files: AnalysisFiles) -> str:
    """Read the question; empty where a recording has it. Raises `SettingsError` if there is none."""
    from ferrule.cli.standard_input import is_utf_8, read_text
    from ferrule.errors import SettingsError

    if files.taken is not None:
        return ""
    if given is None:
        raise SettingsError('there is no question; write it as: ferrule analyze "…" --data FILE')
    text = read_text() if given == "-" else given.strip()
    if not text:
        raise SettingsError("the question is empty")
    if not is_utf_8(text):
        raise SettingsError("the question is not UTF-8 text")
    return text


def _read_settings(changes: Sequence[str], options: Mapping[str, Any]) -> AnalysisSettings:
    """The settings of the configuration file, of --set and of the options. Raises `SettingsError`."""
    from ferrule.analysis.settings import AnalysisSettings
    from ferrule.cli.configuration import read_analysis_defaults
    from ferrule.cli.settings import read_settings

    return read_settings(AnalysisSettings, None, changes, options, read_analysis_defaults())
