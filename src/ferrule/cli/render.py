"""`ferrule render`: a conversation as the tokens that a model is trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferrule.cli.options import AsJson, FormatName


def render(
    file: Annotated[Path, typer.Argument(help="Conversations as JSON or JSON lines; - reads standard input.")],
    dialect: Annotated[
        str | None, typer.Option(help="A family with turns, see `ferrule dialects`; else the tokenizer's own.")
    ] = None,
    tokenizer: Annotated[
        str, typer.Option(metavar="WHERE", help="embedded, a tokenizer.json, or a folder that holds one.")
    ] = "embedded",
    form: FormatName = None,
    as_json: AsJson = False,
) -> None:
    """Show conversations as tokens, trained and untrained."""
    from ferrule.cli.conversation_files import read_conversations
    from ferrule.cli.rendering import Renderer

    conversations = read_conversations(file, form)
    renderer = Renderer(tokenizer, dialect)
    for conversation in conversations:
        renderer.show(conversation, as_json)
    if not as_json:
        renderer.explain(len(conversations))
