"""`ferrule chat`: a conversation, line by line."""

from __future__ import annotations

from typing import Annotated

import typer

from ferrule.cli.options import (
    AsJson,
    JournalFile,
    Keep,
    MaxTokens,
    ModelName,
    PolicyFile,
    Seed,
    StoreFile,
    Temperature,
    ToolFolders,
    Yes,
)


def chat(  # noqa: PLR0913 - a command's options are its parameters
    *,
    model: ModelName = "embedded",
    tools: ToolFolders = None,
    as_json: AsJson = False,
    temperature: Temperature = None,
    seed: Seed = None,
    max_tokens: MaxTokens = None,
    yes: Yes = False,
    policy: PolicyFile = None,
    journal: JournalFile = None,
    store: StoreFile = None,
    keep: Keep = False,
    resume: Annotated[str | None, typer.Option(metavar="ID", help="Go on with a conversation that was kept.")] = None,
) -> None:
    """Talk with a model.

    Ctrl-C stops an answer; Ctrl-D or /quit ends; /save FILE keeps the conversation.
    """
    from ferrule.cli.conversing import converse
    from ferrule.cli.keeping import Keeping
    from ferrule.cli.session import Wishes, opened_session

    wishes = Wishes(
        model, tools or [], as_json, temperature, seed, max_tokens, yes, policy, journal, Keeping(store, keep, resume)
    )
    with opened_session(wishes) as session:
        converse(session)
