"""The options of a run: who may call what, how calls are written, and when the run stops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ferrule.blobs import BlobStore
from ferrule.errors import ModelError
from ferrule.execution import Approver, Journal, Policy

if TYPE_CHECKING:
    from ferrule.models.protocol import Model


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options that `Pipeline.using` takes beside the tools."""

    policy: Policy | None = None
    approver: Approver | None = None
    journal: Journal | None = None
    blobs: BlobStore | None = None
    on_ask: Literal["deny", "pause"] = "deny"
    """What happens where the policy asks and there is no approver: the call is denied, or the run pauses."""
    mode: str = "auto"
    """How calls are written: `api`, the name of a notation (in the text), or `auto`: by the API where it has tools."""
    force: bool = False
    """Whether some tool must be called before the answer; `ToolRequired` where none is."""
    choice: str | None = None
    """For the first message: `auto`, `required`, `none`, or the name of the tool that must be called."""
    lazy: bool | Literal["auto"] = "auto"
    """Whether the model finds its tools by `search_tools`, and is offered those found; `auto`: where they are many."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """When a run is stopped. None: never."""

    rounds: int | None = 16
    """How often the model is asked at most."""
    calls: int | None = None
    """How many calls are run at most; the others are answered as not run."""
    tokens: int | None = None
    """Tokens read and sampled, over all rounds; beyond it the model isn't asked again."""
    cost: float | None = None
    """US dollars; beyond it the model isn't asked again."""
    seconds: float | None = None
    """Seconds of wall time; calls that still run are then cancelled."""


DEFAULT_NOTATION = "hermes"
"""The notation for models without tools of their own: JSON between two tags, which most models have seen."""


def select_mode(model: Model, mode: str) -> tuple[Model, str]:
    """The model that a pipeline asks, and its mode by name: `auto` becomes `api` or the name of a notation.

    Raises `ModelError` for a mode that can't be had, `DialectError` for a notation that there isn't.
    """
    has_tools = model.capabilities.native_tools
    if mode == "api" and not has_tools:
        raise ModelError(f"{model.name} has no tools of its own: use mode='auto', or a notation such as 'native'")
    if mode == "api" or (mode == "auto" and has_tools):
        return model, "api"
    from ferrule.dialects.catalogue import get_notation
    from ferrule.models.text_mode import TextModeModel

    name = DEFAULT_NOTATION if mode == "auto" else mode
    return TextModeModel(model, get_notation(name)), name
