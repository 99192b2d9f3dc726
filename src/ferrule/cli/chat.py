"""`ferrule chat`: a conversation, line by line."""

from __future__ import annotations

from typing import Annotated

import typer

from ferrule.cli.options import (
    AsJson,
    BaseUrl,
    Fallback,
    JournalFile,
    Keep,
    MaxTokens,
    Mode,
    ModelName,
    Plugins,
    PolicyFile,
    Seed,
    Servers,
    ServerTimeout,
    StoreFile,
    Temperature,
    ToolFolders,
    Trust,
    Yes,
)


def chat(  # noqa: PLR0913 - a command's options are its parameters
    *,
    model: ModelName = "embedded",
    base_url: BaseUrl = None,
    mode: Mode = "auto",
    fallback: Fallback = None,
    tools: ToolFolders = None,
    plugins: Plugins = False,
    mcp: Servers = None,
    mcp_timeout: ServerTimeout = 30.0,
    trust: Trust = False,
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
    from ferrule.cli.model_choice import ModelChoice
    from ferrule.cli.session import ServerWishes, Wishes, opened_session

    choice = ModelChoice(model, base_url, fallback, mode)
    keeping = Keeping(store, keep, resume)
    servers = ServerWishes(mcp or [], mcp_timeout, trust)
    wishes = Wishes(
        choice, tools or [], as_json, temperature, seed, max_tokens, yes, policy, journal, keeping, plugins, servers
    )
    with opened_session(wishes) as session:
        converse(session)
