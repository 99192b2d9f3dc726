"""`ferrule ask`: one question, answered."""

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


def ask(  # noqa: PLR0913 - a command's options are its parameters
    question: Annotated[str, typer.Argument(help="What to ask; - reads it from standard input.")],
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
) -> None:
    """Ask a model one question, and show its calls and its answer."""
    from ferrule.cli.keeping import Keeping
    from ferrule.cli.model_choice import ModelChoice
    from ferrule.cli.session import ServerWishes, Wishes, opened_session
    from ferrule.cli.standard_input import read_text

    choice = ModelChoice(model, base_url, fallback, mode)
    keeping = Keeping(store, keep)
    servers = ServerWishes(mcp or [], mcp_timeout, trust)
    wishes = Wishes(
        choice, tools or [], as_json, temperature, seed, max_tokens, yes, policy, journal, keeping, plugins, servers
    )
    text = read_text() if question == "-" else question
    with opened_session(wishes) as session:
        if not session.answer(text):
            raise typer.Exit(1)
