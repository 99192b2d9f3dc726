"""`ferrule analyze`: a question about data, answered by a plan of tasks whose code runs in the sandbox."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferrule.cli.options import Changes, require_parent_folder
from ferrule.cli.session_options import PROVIDERS, SessionOptions, add_session_options, make_model_option

if TYPE_CHECKING:
    from ferrule.analysis.settings import AnalysisSettings
    from ferrule.cli.analysis_run import AnalysisFiles

ModelName = Annotated[
    str,
    make_model_option(
        f"The model, which must be given: PROVIDER:MODEL with one of {PROVIDERS}, or local:FOLDER; see `models`.",
        shows_default=False,
    ),
]
"""`--model` where the embedded model, the default of other commands, is refused."""


@dataclass(frozen=True, slots=True)
class AnalyzeOptions:
    """Each field is an option of `analyze`."""

    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            metavar="[NAME=]FILE",
            help="A table: CSV, Excel, Parquet, JSON lines or SQLite. May be repeated, with names.",
        ),
    ] = None
    analysis_mode: Annotated[
        str | None, typer.Option("--mode", metavar="MODE", help="quick, balanced (the default), thorough or research.")
    ] = None
    shows_plan: Annotated[
        bool, typer.Option("--plan", help="Show the plan before anything runs, to approve, edit or refuse it.")
    ] = False
    share: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT", help="What models are shown of the data: schema, profile (the default) or samples."
        ),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=require_parent_folder, help="Write a self-contained page of everything."),
    ] = None
    notebook: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=require_parent_folder, help="Write a notebook that computes it again."),
    ] = None
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            callback=require_parent_folder,
            help="Record every answer and run in this file; the default is one in the user's data folder.",
        ),
    ] = None
    no_record: Annotated[bool, typer.Option("--no-record", help="Record nothing.")] = False
    replay: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Show a recorded analysis (or the last one): no model, nothing runs."),
    ] = None
    rerun: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Run the code of a recorded analysis again, and compare what it computes."),
    ] = None
    continues: Annotated[
        Path | None,
        typer.Option("--continue", metavar="FILE", help="Ask a further question with the results of a recording."),
    ] = None
    max_cost: Annotated[float | None, typer.Option(metavar="DOLLARS", help="The most that models may cost.")] = None
    max_seconds: Annotated[float | None, typer.Option(metavar="SECONDS", help="The most time.")] = None
    max_calls: Annotated[int | None, typer.Option(metavar="N", help="The most requests to models.")] = None
    price: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[MODEL=]READ/WRITTEN",
            help="What a model costs, in dollars for a million tokens read and written, such as 0.15/0.6; 0/0 is"
            " nothing. May be repeated, with models.",
        ),
    ] = None
    max_iterations: Annotated[int | None, typer.Option(metavar="N", help="The most rounds of plans.")] = None
    changes: Changes = None


_WITHOUT = (
    "system", "attachments", "schema", "mode", "record", "no_tools", "no_calculator", "temperature", "seed",
    "max_tokens", "store", "keep", "resume", "continue_last", "cost",
)  # fmt: skip
_SETTINGS = ("share", "max_cost", "max_seconds", "max_calls", "max_iterations")
"""The options that are settings of their name."""
_LAST = "last"


def run_analyze(
    question: Annotated[
        str | None, typer.Argument(help="What to find out; - reads it from standard input. A recording has its own.")
    ] = None,
    *,
    given: AnalyzeOptions,
    options: SessionOptions,
) -> None:
    """Answer a question about data, every number traced to code.

    The model plans tasks and writes the code that computes them. Every model answer and run is recorded, for --replay,
    --rerun and --continue; FILE may be `last` for these. Exit status: 0 the answer is complete, 1 it is partial, 2
    wrong input, 3 the provider failed, 130 Ctrl-C, with what was found until then.
    """
    from ferrule.cli.analysis_run import AnalysisOrder, analyze_and_show

    files = _choose_files(given)
    _check_combination(files, question, given)
    settings, prices = _read_settings(given), _read_prices(given.price or (), options.model)
    data = tuple(given.data or ())
    order = AnalysisOrder(_read_question(question, files), data, settings, given.shows_plan, files, options, prices)
    status = analyze_and_show(order)
    if status:
        raise typer.Exit(status)


analyze = add_session_options(run_analyze, without=_WITHOUT, described={"model": ModelName})


def _choose_files(given: AnalyzeOptions) -> AnalysisFiles:
    from ferrule.cli.analysis_run import AnalysisFiles

    replay, rerun, continues = map(_find_recording, (given.replay, given.rerun, given.continues))
    return AnalysisFiles(given.record, given.no_record, replay, rerun, continues, given.report, given.notebook)


def _find_recording(given: Path | None) -> Path | None:
    """The recording of a name; `last` is the newest in the user's folder. Raises `SettingsError` if there is none."""
    from ferrule.analysis.recording.writer import find_last_recording

    return find_last_recording() if given is not None and str(given) == _LAST and not given.exists() else given


def _check_combination(files: AnalysisFiles, question: str | None, given: AnalyzeOptions) -> None:
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
    if given.shows_plan:
        raise SettingsError(f"{option} and --plan can't be used together: the recorded plan runs")
    if files.replay is not None and given.data:
        raise SettingsError("--replay reads no data; --rerun computes again with the files of --data")


def _read_question(given: str | None, files: AnalysisFiles) -> str:
    """Read the question; empty where a recording has it. Raises `SettingsError` if there is none."""
    from ferrule.cli.standard_input import is_utf_8, read_text
    from ferrule.errors import SettingsError

    if files.taken is not None:
        return ""
    if given is None:
        rest = f"--continue {files.continues}" if files.continues is not None else "--data FILE"
        raise SettingsError(f'there is no question; write it as: ferrule analyze "…" {rest}')
    text = read_text() if given == "-" else given.strip()
    if not text:
        raise SettingsError("the question is empty")
    if not is_utf_8(text):
        raise SettingsError("the question is not UTF-8 text")
    return text


def _read_settings(given: AnalyzeOptions) -> AnalysisSettings:
    """The settings of the configuration file, of --set and of the options. Raises `SettingsError`."""
    from ferrule.analysis.settings import AnalysisSettings
    from ferrule.cli.option_sources import read_analysis_defaults
    from ferrule.cli.settings import read_settings

    own = {name: getattr(given, name) for name in _SETTINGS} | {"mode": given.analysis_mode}
    return read_settings(AnalysisSettings, None, given.changes or (), own, read_analysis_defaults())


def _read_prices(given: Sequence[str], model: str) -> dict[str, dict[str, float]]:
    """The prices of --price by models. Raises `SettingsError` for what is no price."""
    from ferrule.errors import SettingsError

    prices = {}
    for one in given:
        name, _, rates = one.rpartition("=")
        try:
            read, written = map(float, rates.split("/"))
            if not (0 <= read < math.inf and 0 <= written < math.inf):
                raise ValueError
        except ValueError:
            raise SettingsError(
                f"--price {one}: write it as READ/WRITTEN, such as 0.15/0.6, in dollars for a million tokens; with "
                f"several models as {model}=0.15/0.6"
            ) from None
        prices[name.strip() or model] = {"input": read, "output": written}
    return prices
