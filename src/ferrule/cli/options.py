"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

ModelName: TypeAlias = Annotated[
    str, typer.Option("--model", metavar="MODEL", help="The model: embedded, or local:FOLDER.")
]
ToolFolders: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--tools", metavar="FOLDER", help="Offer the tools of its *_tool.py files too. May be repeated."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]
Temperature: TypeAlias = Annotated[
    float | None, typer.Option(min=0, help="0, the default, always takes the most likely token.")
]
Seed: TypeAlias = Annotated[int | None, typer.Option(min=0, help="Makes sampling repeatable.")]
MaxTokens: TypeAlias = Annotated[int | None, typer.Option(min=1, help="The most tokens of one message.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Answer yes wherever the policy asks.")]
PolicyFile: TypeAlias = Annotated[
    Path | None, typer.Option("--policy", metavar="FILE", help="Rules on what may run, in TOML.")
]
JournalFile: TypeAlias = Annotated[
    Path | None, typer.Option("--journal", metavar="FILE", help="Record every call in this file, as JSON lines.")
]
ConfigFile: TypeAlias = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings, in TOML; --set goes before it.")
]
Changes: TypeAlias = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting. May be repeated.")
]
FormatName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="ferrule, openai, anthropic, nanochat or ovis; else told by what it looks like.",
    ),
]
StoreFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", envvar="FERRULE_STORE", help="The file that conversations are kept in."),
]
Keep: TypeAlias = Annotated[bool, typer.Option("--keep", help="Keep the conversation, see `ferrule history`.")]
