"""The options of `ferrule analyze` besides those of a session."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ferrule.cli.options import Changes, require_parent_folder
from ferrule.cli.session_options import PROVIDERS, make_model_option

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
