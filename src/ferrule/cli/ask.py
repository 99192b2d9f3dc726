"""`ferrule ask`: answer one question."""

from __future__ import annotations

from typing import Annotated

import typer

from ferrule.cli.session_options import SessionOptions, add_session_options, open_session


@add_session_options
def ask(
    question: Annotated[str, typer.Argument(help="What to ask; - reads it from standard input.")],
    options: SessionOptions,
) -> None:
    """Ask a model one question, and show its calls and its answer."""
    from ferrule.cli.standard_input import read_text
    from ferrule.errors import SettingsError

    if question == "-" and "-" in (options.attachments or ()):
        raise SettingsError("standard input can be the question or an attachment, not both")
    text = read_text() if question == "-" else question
    with open_session(options) as session:
        if session.ask(text).stopped != "done":
            raise typer.Exit(1)
