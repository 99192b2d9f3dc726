"""What a pipeline holds: which calls may run, how calls are written, when the run stops, and its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ferrule.errors import DialectError, PolicyError, SettingsError

if TYPE_CHECKING:
    from ferrule.agent.run import Run
    from ferrule.blobs import BlobStore
    from ferrule.execution import Approver, Journal, Policy


_METHODS = {"approver": ("decide",), "journal": ("make_key", "record"), "blobs": ("put", "get")}
_LIMITS: dict[str, Any] = {"rounds": int, "calls": int, "tokens": int, "cost": (int, float), "seconds": (int, float)}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options that `Pipeline.using` takes besides the tools.

    Raises `PolicyError`, `SettingsError` and `DialectError` for an option that can't be used.
    """

    policy: Policy | None = None
    approver: Approver | None = None
    journal: Journal | None = None
    blobs: BlobStore | None = None
    workspace: Path | None = None
    """The folder in which the profiles `accept-edits` and `auto` don't ask; None: no path is outside."""
    on_ask: Literal["deny", "pause"] = "deny"
    """What happens if the policy asks and there is no approver: the call is denied, or the run pauses."""
    mode: str = "auto"
    """How calls are written: `api`, the name of a notation in the text, or `auto`: `api` if the API has tools."""
    force: bool = False
    """Whether some tool must be called before the answer; `ToolRequired` if none is."""
    choice: str | None = None
    """For the first message: `auto`, `required`, `none`, or the name of the tool that must be called."""
    lazy: bool | Literal["auto"] = "auto"
    """Whether the model finds its tools by `search_tools`, and is offered those found; `auto`: if there are many."""

    def __post_init__(self) -> None:
        if self.policy is not None:
            from ferrule.execution.policy import Policy

            if not isinstance(self.policy, Policy):
                raise PolicyError(f"policy must be a Policy, not {self.policy!r}; give a profile as Policy(profile=…)")
        for name, methods in _METHODS.items():
            given = getattr(self, name)
            missing = [method for method in methods if not callable(getattr(given, method, None))]
            if isinstance(given, type):
                raise SettingsError(f"{name} can't be the class {given.__name__}; give {given.__name__}()")
            if given is not None and missing:
                raise SettingsError(f"{name} must have the method {missing[0]}(), which {given!r} doesn't have")
        if self.workspace is not None and not isinstance(self.workspace, Path):
            raise SettingsError(f"workspace must be a pathlib.Path, not {self.workspace!r}")
        if self.on_ask not in ("deny", "pause"):
            raise SettingsError(f"on_ask must be 'deny' or 'pause', not {self.on_ask!r}")
        if self.lazy not in (True, False, "auto"):
            raise SettingsError(f"lazy must be True, False or 'auto', not {self.lazy!r}")
        if self.mode not in ("auto", "api"):
            _check_notation(self.mode)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of a run; None is no limit. Raises `SettingsError` for one that can't be."""

    rounds: int | None = 16
    """The most requests to the model."""
    calls: int | None = None
    """The most calls that are run; the others are answered as not run."""
    tokens: int | None = None
    """Tokens read and sampled over all rounds; once reached, the model isn't asked again."""
    cost: float | None = None
    """US dollars; once reached, the model isn't asked again."""
    seconds: float | None = None
    """Seconds of wall time; calls that are still running are then cancelled."""

    def __post_init__(self) -> None:
        for name, kinds in _LIMITS.items():
            limit = getattr(self, name)
            if limit is not None and (not isinstance(limit, kinds) or isinstance(limit, bool) or not limit >= 0):
                kind = "a whole number" if kinds is int else "a number"
                raise SettingsError(f"{name} must be {kind}, 0 or more, or None, not {limit!r}")


@dataclass(frozen=True, slots=True)
class UseTools:
    """The step after which calls are answered before the next step: `USE_TOOLS`, as all of them are equal."""


USE_TOOLS = UseTools()


@dataclass(frozen=True, slots=True)
class Then:
    """A callback on the run; a conversation that it returns takes the place of the run's."""

    callback: Callable[[Run[Any]], Any]


@dataclass(frozen=True, slots=True)
class Map:
    """A callback on all runs of `run_many` or `run_batch`, once each of them has come this far."""

    callback: Callable[[list[Run[Any]]], Any]


Step: TypeAlias = UseTools | Then | Map


def _check_notation(mode: str) -> None:
    """Raise `SettingsError` or `DialectError` if a mode is no notation."""
    from ferrule.dialects.catalogue import get_notation
    from ferrule.tools.registry import find_nearest_names

    try:
        get_notation(mode)
    except DialectError as error:
        near = find_nearest_names(mode, ("auto", "api"))
        if not near:
            raise
        raise SettingsError(f"unknown mode {mode!r}; did you mean {near[0]}?") from error
