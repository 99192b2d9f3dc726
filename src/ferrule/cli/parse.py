"""`ferrule parse`: what a model wrote, read as a family of models writes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferrule.cli.options import AsJson


def parse(
    file: Annotated[Path, typer.Argument(help="What the model wrote; - reads standard input as it comes.")],
    dialect: Annotated[str, typer.Option(help="The family: see `ferrule dialects`.")],
    tools: Annotated[Path | None, typer.Option(help="A JSON list of tools, in OpenAI's or Anthropic's shape.")] = None,
    opens: Annotated[str, typer.Option(help="How the prompt ended: <think> where it opened the reasoning.")] = "",
    repair: Annotated[bool, typer.Option(help="Put right a call that is nearly right.")] = True,
    as_json: AsJson = False,
) -> None:
    """Read what a model wrote: text, reasoning, and calls.

    What can't be read is shown in its place, and the exit status is 1.
    """
    from ferrule.cli.parsing import PeopleParse, json_lines, pieces_of, read_tools
    from ferrule.dialects.catalogue import get_notation

    reader = get_notation(dialect).reader(read_tools(tools) if tools else (), opens=opens, repair=repair)
    show = json_lines if as_json else PeopleParse().show
    is_whole = True
    for piece in pieces_of(file):
        is_whole &= show(reader.feed(piece))
    is_whole &= show(reader.close(stopped=True))
    if not is_whole:
        raise typer.Exit(1)
