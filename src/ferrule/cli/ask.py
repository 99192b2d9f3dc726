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
    from ferrule.cli.standard_input import is_utf_8, read_piped_text, read_text
    from ferrule.errors import SettingsError

    is_attached = "-" in (options.attachments or ())
    if question == "-" and is_attached:
        raise SettingsError("standard input can be the question or an attachment, not both")
    if not question.strip():
        raise SettingsError("the question is empty")
    if not is_utf_8(question):
        raise SettingsError("the question is not UTF-8 text")
    if question == "-":
        text = read_text()
    else:
        text = "\n\n".join(filter(None, ("" if is_attached else read_piped_text(), question)))
    with open_session(options, require_servers=True) as runner:
        if runner.run_turn(runner.session.ask(text)).stopped != "done":
            raise typer.Exit(1)
