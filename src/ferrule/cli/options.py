"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

PROVIDERS = (
    "openai, openai-responses, anthropic, google, vllm, sglang, llamacpp, ollama, lmstudio, groq, openrouter, deepseek,"
    " mistral, together, fireworks, xai, cerebras, huggingface, compatible"
)
ModelName: TypeAlias = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="MODEL",
        help=f"The model: embedded, local:FOLDER, echo, or PROVIDER:MODEL with one of {PROVIDERS}; see `models`.",
    ),
]
BaseUrl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--base-url", metavar="URL", help="The address of the provider's API; the key is from its environment variable."
    ),
]
Mode: TypeAlias = Annotated[
    str,
    typer.Option(
        "--mode", metavar="MODE", help="How calls are written: auto, api, or in the text, in a notation of `dialects`."
    ),
]
Fallback: TypeAlias = Annotated[
    str | None, typer.Option("--fallback", metavar="MODEL", help="The model to ask where the first one fails.")
]
ToolFolders: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--tools",
        metavar="FOLDER",
        help="Offer the tools of its *_tool.py files, or the contained `python` or `shell`, too. May be repeated.",
    ),
]
Plugins: TypeAlias = Annotated[bool, typer.Option("--plugins", help="Offer the tools of installed packages too.")]
Servers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--mcp",
        metavar="SERVER",
        help="Offer the tools of an MCP server too: the command that starts it, in quotes, or its address. Repeatable.",
    ),
]
ServerTimeout: TypeAlias = Annotated[
    float,
    typer.Option("--mcp-timeout", min=0.1, metavar="SECONDS", help="How long each of --mcp may take to be ready."),
]
Trust: TypeAlias = Annotated[
    bool, typer.Option("--trust", help="Believe what MCP servers say of their tools, such as read-only.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]
Temperature: TypeAlias = Annotated[
    float | None, typer.Option(min=0, help="0 always takes the most likely token; a provider has its own default.")
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
        help="ferrule, openai, openai-responses, anthropic, nanochat or ovis; else told by what it looks like.",
    ),
]
StoreFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", envvar="FERRULE_STORE", help="The file that conversations are kept in."),
]
Keep: TypeAlias = Annotated[bool, typer.Option("--keep", help="Keep the conversation, see `ferrule history`.")]
