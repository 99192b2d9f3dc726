"""The keys of the user's configuration file. Each has the name of an option, and is its default."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class UserSettings(BaseModel):
    """Defaults of `ask` and `chat`. Paths are relative to the file's folder; `~` is the home folder."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | None = None
    """The model, such as `openai:gpt-5`."""
    base_url: str | None = None
    """The address of that model's provider; not used for a model that is named elsewhere."""
    mode: str | None = None
    """How calls are written for that model; not used for a model that is named elsewhere."""
    fallback: str | None = None
    """The model to ask if the first one fails."""
    system: str | None = None
    """What the model is told before a new conversation."""
    temperature: float | None = Field(None, ge=0)
    """How freely tokens are sampled."""
    seed: int | None = Field(None, ge=0)
    """Makes sampling repeatable."""
    max_tokens: int | None = Field(None, ge=1)
    """The most tokens of one message."""
    tools: list[str] | None = None
    """Tools to offer: Python files, which are trusted, folders, and `python` or `shell`."""
    plugins: bool | None = None
    """Whether the tools of installed packages are offered."""
    mcp: list[str] | None = None
    """MCP servers to use, each by its command or address."""
    mcp_timeout: float | None = Field(None, ge=0.1)
    """How many seconds each server may take to start."""
    policy: str | None = None
    """The file of rules on what may run."""
    journal: str | None = None
    """The file in which every call is recorded."""
    store: str | None = None
    """The file in which conversations are saved; `history` reads it, too."""
    keep: bool | None = None
    """Whether conversations are saved."""
    cost: bool | None = None
    """Whether the tokens, seconds and price of each answer are shown."""
    prices: str | None = None
    """The file of prices, unless `FERRULE_PRICES` names one."""
