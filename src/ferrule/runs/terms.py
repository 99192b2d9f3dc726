"""On what terms a pipeline runs: who may call what, how calls are written, and when it is enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ferrule.blobs import BlobStore
from ferrule.execution import Approver, Journal, Policy


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms that `Pipeline.using` takes beside the tools."""

    policy: Policy | None = None
    approver: Approver | None = None
    journal: Journal | None = None
    blobs: BlobStore | None = None
    on_ask: Literal["deny", "pause"] = "deny"
    """What happens where the policy asks and nobody is there: the call is denied, or the run pauses."""
    mode: str = "auto"
    """How calls are written: `api`, the name of a notation (in the text), or `auto`: by the API where it has tools."""
    force: bool = False
    """Whether some tool must be called before the answer; `ToolRequired` where none is."""
    choice: str | None = None
    """For the first message: `auto`, `required`, `none`, or the name of the tool that must be called."""
    lazy: bool | Literal["auto"] = "auto"
    """Whether the model finds its tools by `search_tools`, and is offered those found; `auto`: where they are many."""
    max_rounds: int = 16
    """How often the model is asked at most."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run is stopped, beside its rounds. None: never."""

    calls: int | None = None
    """How many calls are run at most; the others are answered as not run."""
    tokens: int | None = None
    """Tokens read and written, over all rounds; the model isn't asked again beyond it."""
    cost: float | None = None
    """US dollars, likewise."""
    seconds: float | None = None
    """Seconds of wall time; what runs then is cancelled."""
