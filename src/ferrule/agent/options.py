"""What a pipeline holds: which calls may run, how calls are written, when the run stops, and its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from ferrule._util.callback_signature import find_callback_problem
from ferrule.errors import DialectError, PolicyError, SettingsError

if TYPE_CHECKING:
    from ferrule.agent.run import Run
    from ferrule.blobs import BlobStore
    from ferrule.execution import Approver, Journal, Policy


def _has(method: str) -> Callable[[Any], bool]:
    """A check for an object with this method, or None; a class has the method too, but can't be used."""
    return lambda given: given is None or (not isinstance(given, type) and callable(getattr(given, method, None)))


_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "journal": (_has("make_key"), "a Journal, such as FileJournal(path)"),
    "blobs": (_has("put"), "a BlobStore, such as BlobStore(folder)"),
    "workspace": (lambda given: isinstance(given, Path | None), "the path of a folder"),
    "on_ask": (lambda given: given in ("deny", "pause"), "'deny' or 'pause'"),
    "lazy": (lambda given: given in (True, False, "auto"), "True, False or 'auto'"),
    "force": (lambda given: isinstance(given, bool), "True or False (choice= names a tool)"),
    "choice": (lambda given: isinstance(given, str | None), "'auto', 'required', 'none' or the name of a tool"),
    "mode": (lambda given: isinstance(given, str), "'auto', 'api' or the name of a notation"),
}
"""For each option, whether a value can be used, and what can be."""
_LIMITS: dict[str, Any] = {"rounds": int, "calls": int, "tokens": int, "cost": (int, float), "seconds": (int, float)}


_OTHER_NAMES: dict[str, str] = {
    **dict.fromkeys(("max_turns", "max_rounds", "max_steps", "max_iterations", "recursion_limit"), "within(rounds=…)"),
    **dict.fromkeys(("max_calls", "max_tool_calls", "tool_calls_limit"), "within(calls=…)"),
    **dict.fromkeys(("timeout", "max_time", "max_execution_time"), "within(seconds=…)"),
    **dict.fromkeys(("max_cost", "budget", "max_budget"), "within(cost=…)"),
    **dict.fromkeys(("max_output_tokens", "max_completion_tokens", "max_new_tokens"), "with_(max_tokens=…)"),
    **dict.fromkeys(("tools", "functions"), "using(f, g), with the tools one after the other"),
    **dict.fromkeys(("output_type", "response_format", "response_model", "result_type"), "parse_as(type)"),
    **dict.fromkeys(("system_prompt", "instructions", "system"), "system(text)"),
    "tool_choice": "using(choice=…)",
    "reasoning_effort": "with_(effort=…)",
    "stop_sequences": "with_(stop=…)",
    "callbacks": "hook(…) or watch(…)",
}
"""What to write for options of other libraries."""


def refuse_options(method: str, given: Iterable[str], known: Iterable[str]) -> NoReturn:
    """Raise `SettingsError` for the first of the options that a method of a pipeline doesn't have."""
    from ferrule.tools.registry import find_nearest_names

    name, known = next(iter(given)), list(known)
    near = find_nearest_names(name, known)
    places = {
        one.name: kind for kind, holder in (("within", RunLimits), ("using", RunOptions)) for one in fields(holder)
    }
    if name in _OTHER_NAMES:
        advice = f"write {_OTHER_NAMES[name]}"
    elif name in places:
        advice = f"write {places[name]}({name}=…)"
    elif near:
        advice = f"did you mean {near[0]}?"
    else:
        advice = f"there are: {', '.join(known)}"
    raise SettingsError(f"{method}() has no option {name!r}; {advice}")


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
        if self.approver is not None and (isinstance(self.approver, type) or not hasattr(self.approver, "decide")):
            from ferrule.execution.approver import make_approver

            object.__setattr__(self, "approver", make_approver(self.approver))
        workspace: Any = self.workspace
        if isinstance(workspace, str):
            object.__setattr__(self, "workspace", Path(workspace))
        for name, (is_usable, described) in _CHECKS.items():
            if not is_usable(getattr(self, name)):
                raise SettingsError(f"{name} must be {described}, not {getattr(self, name)!r}")
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


def check_callbacks(method: str, callbacks: Sequence[Any], gets: str) -> None:
    """Raise `SettingsError` for a callback that can't be called with one argument; `gets` says what that is."""
    for callback in callbacks:
        problem = find_callback_problem(callback)
        if problem:
            raise SettingsError(f"{method}() takes functions of a {gets}, {problem}")


def _check_notation(mode: str) -> None:
    """Raise `SettingsError` or `DialectError` if a mode is no notation."""
    from ferrule.dialects.catalogue import get_notation

    try:
        get_notation(mode)
    except DialectError as error:
        if "did you mean" in str(error):
            raise
        from difflib import get_close_matches

        near = get_close_matches(mode.lower(), ("auto", "api"), n=1)
        if not near:
            raise
        raise SettingsError(f"unknown mode {mode!r}; did you mean {near[0]}?") from error
