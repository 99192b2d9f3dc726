"""`ferrule analyze`: a question about data, answered by a plan of tasks whose code runs in the sandbox."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferrule.cli.analyze_options import AnalyzeOptions, ModelName
from ferrule.cli.session_options import SessionOptions, add_session_options

if TYPE_CHECKING:
    from ferrule.analysis.settings import AnalysisSettings
    from ferrule.cli.analysis_run import AnalysisFiles

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
    from ferrule.analysis.recording.user_folder import find_last_recording

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
