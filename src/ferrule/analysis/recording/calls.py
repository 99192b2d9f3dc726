"""The tools of a recorded analysis that aren't its own: what was offered, and what each call was answered.

A replay offers them as they were, and gives the recorded results: it needs neither the tools nor a network. What is
recorded is the executor's answer, so a denial and a timeout come back as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NoReturn

from ferrule.agent.hooks import Hooks, RunState
from ferrule.analysis.recording.source import RESULT
from ferrule.conversation import tool_message
from ferrule.models.recording.request import describe_tool
from ferrule.models.recording.rows import Failure
from ferrule.tools.decorator import Tool
from ferrule.tools.registry import BoundRegistry
from ferrule.toolspec import Annotations, ToolGroup

if TYPE_CHECKING:
    from ferrule.analysis.recording.recording import Recording
    from ferrule.analysis.recording.source import RecordedAnalysis
    from ferrule.analysis.stages import StageKey
    from ferrule.conversation import ToolResult

_OFFERS = "tools"
"""The name of the recorded value with the added tools, and the names of those of the analyst that need a key."""
_NEVER_CALLED = "a tool of a recording is never called"


class CallRecorder(Hooks):
    """Records the results of an added tool's calls, or answers the calls with those that are recorded."""

    def __init__(self, recording: Recording, key: StageKey) -> None:
        self._recording = recording
        self._key = key
        self._is_waiting = False

    async def after_message(self, state: RunState) -> None:
        """Answer the calls of the message, if that is recorded. Raises what ended the recorded call."""
        self._is_waiting = bool(state.open_calls) and state.is_complete
        if self._is_waiting and self._recording.source is not None:
            results = [self._recording.take_result(self._key) for _ in state.open_calls]
            state.conversation = state.conversation.add(*map(tool_message, results))

    async def after_results(self, state: RunState) -> None:
        """Record the results of the last message."""
        self._is_waiting = False
        results: list[ToolResult] = []
        for message in reversed(state.conversation.messages):
            if message.role != "tool":
                break
            results.insert(0, message.result)
        for result in results:
            self._recording.add_result(self._key, result)

    def end(self, error: Exception) -> None:
        """Record that the question ended with an error while a call was running."""
        if self._is_waiting and self._recording.source is None:
            self._recording.add_result(self._key, Failure.describe(error))


def keep_offers(recording: Recording, own: Sequence[str], added: Iterable[Tool[..., Any]]) -> None:
    """Record which tools are on offer, besides those that every analysis has; `own` are names of the analyst's."""
    specs = [
        {
            **describe_tool(tool.spec),
            "annotations": asdict(tool.annotations),
            "origin": tool.origin,
            "group": None if tool.group is None else asdict(tool.group),
        }
        for tool in added
    ]
    if specs or own:
        recording.keep(_OFFERS, {"own": list(own), "added": specs})


def list_recorded_tools(source: RecordedAnalysis) -> tuple[list[str], list[str]]:
    """The names of the analyst's tools that needed a key, and of the added ones. Raises `SettingsError`."""
    with source.reading(_OFFERS) as offers:
        found = offers or {"own": [], "added": []}
        return [str(one) for one in found["own"]], [str(one["name"]) for one in found["added"]]


def restore_tools(source: RecordedAnalysis, given: BoundRegistry) -> BoundRegistry:
    """The added tools of a recording, as they were offered; those that are given now are offered as they are now.

    None of them is called. Raises `SettingsError` for what can't be read.
    """
    with source.reading(_OFFERS) as offers:
        specs = offers["added"] if offers else []
        names = {spec["name"] for spec in specs}
        kept = [given.get(spec["name"]) or _restore_tool(spec) for spec in specs]
    return BoundRegistry([*kept, *(tool for tool in given if tool.name not in names)])


def _restore_tool(spec: dict[str, Any]) -> Tool[..., Any]:
    made = Tool.from_schema(spec["name"], spec["description"], spec["parameters"], _refuse_to_run)
    group = None if spec["group"] is None else ToolGroup(**spec["group"])
    return replace(made, annotations=Annotations(**spec["annotations"]), origin=spec["origin"], group=group)


def _refuse_to_run(**_arguments: Any) -> NoReturn:
    raise RuntimeError(_NEVER_CALLED)


def describe_missing_tools(recording: Recording, names: Iterable[str]) -> list[str]:
    """A sentence for each tool of the continued analysis that this one, which has `names`, can't use."""
    if recording.earlier is None:
        return []
    known = set(names)
    own, added = list_recorded_tools(recording.earlier)
    said = [
        f"the continued analysis had {name}, which needs a key that isn't set: no further task can have it"
        for name in own
        if name not in known
    ]
    return said + [
        f"the continued analysis had the tool {name}, which isn't given now: its results can be used, but no further "
        "task can have it; give it by --tools, --plugins or --mcp (tools= of run_analysis)"
        for name in added
        if name not in known
    ]


def describe_uncalled_tools(recording: Recording) -> list[str]:
    """What a `--rerun` doesn't compute again: results of tools, which may be out of date or change something."""
    if recording.source is None or recording.is_replay:
        return []
    names = sorted({place.split("/")[1] for place in recording.source.list_stages(RESULT)})
    if not names:
        return []
    return [f"code runs again, tools are not called: the results of {', '.join(names)} are the recorded ones"]
