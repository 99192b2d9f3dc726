"""The coding agent as a pipeline: its system text, tools, hooks and limits.

    agent = make_agent(model("openai:gpt-5"), Path("."))
    run = await agent.chat("Add error handling to fetch() in api.py.").using(policy=Policy(profile="auto")).run()

`program.py` makes a session of it for a person, `terminal/` shows that.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule.agent.compaction import CompactContext
from ferrule.agent.hooks import Hooks, RunState
from ferrule.agent.pipeline import Pipeline
from ferrule.coding.files.patch_notation import list_patched, parse_patch
from ferrule.coding.instructions import make_system_text, read_project_instructions
from ferrule.conversation import Conversation, Message, ToolCall, ToolResult
from ferrule.errors import ToolRetry
from ferrule.models.context_sizes import find_context_size

if TYPE_CHECKING:
    from ferrule.agent.compaction import LimitFinder
    from ferrule.models.protocol import Model

ROUNDS = 200
"""The most requests to the model in one turn: a model that goes in circles stops."""
REPETITIONS = 8
"""How often one call may fail in the same way; from the third on, its result tells the model to try something else."""
_SHARE = 4 / 5
"""How full the context may be before it is compacted: an answer and a long result must fit into the rest."""
_READING = ("read_file", "write_file", "edit_file", "apply_patch")
_MOST_FILES = 100


def make_agent(
    model: Model | Pipeline[Any],
    workspace: Path | str,
    *,
    added: Sequence[Path | str] = (),
    context_limit: int | None = None,
) -> Pipeline[Any]:
    """Make the pipeline of the coding agent for a folder, from a model, or a pipeline with settings of its own.

    `added` are further folders that it may use; `context_limit` is the size of the model's context in tokens, where
    neither its server nor the table of `models/context_sizes.py` has it right. Tools are given to `using`.
    """
    pipeline: Pipeline[Any] = model if isinstance(model, Pipeline) else Pipeline(model)
    own = pipeline.conversation
    pipeline = replace(pipeline, conversation=Conversation((), own.now))
    workspace, folders = Path(workspace), tuple(map(Path, added))
    text = make_system_text(workspace, own.now, folders, read_project_instructions(workspace))
    if own.messages:  # what the user says comes last
        text = "\n\n".join([text, *(message.text for message in own.messages)])
    return prepare_pipeline(pipeline, context_limit).system(text)


def prepare_pipeline(pipeline: Pipeline[Any], context_limit: int | None = None) -> Pipeline[Any]:
    """Add the limits and hooks of the coding agent, but no system text: for another model in the same conversation."""
    # Few messages stay: the result of one call may take a good part of a small context.
    compaction = CompactContext(_limit_context(context_limit), summarizer="model", keep=2, describe=describe_files)
    return pipeline.within(rounds=ROUNDS).hook(compaction, StopRepetition())


def _limit_context(given: int | None) -> LimitFinder:
    async def find(model: Model) -> int | None:
        size = given or await find_context_size(model)
        return None if size is None else int(size * _SHARE)

    return find


def describe_files(dropped: Sequence[Message]) -> str:
    """Describe which files were read and changed in messages that are left out of the conversation."""
    done = {message.result.call_id for message in dropped if message.role == "tool" and not message.result.is_error}
    paths: dict[str, dict[str, None]] = {"read": {}, "changed": {}}
    for message in dropped:
        for call in message.calls:
            if isinstance(call, ToolCall) and call.name in _READING and call.id in done:
                kind = "read" if call.name == "read_file" else "changed"
                paths[kind] |= dict.fromkeys(_list_paths(call))
    lines = [f"Files {kind}: {', '.join(list(found)[-_MOST_FILES:])}" for kind, found in paths.items() if found]
    return "\n".join(lines)


def _list_paths(call: ToolCall) -> list[str]:
    """The files that a call names, by `path` or in a patch."""
    try:
        arguments = call.decode()
    except (ValueError, RecursionError):
        return []
    if not isinstance(arguments, dict):
        return []
    path, patch = arguments.get("path"), arguments.get("patch")
    if isinstance(patch, str):
        with suppress(ToolRetry):
            return list_patched(parse_patch(patch))
    return [path] if isinstance(path, str) else []


class StopRepetition(Hooks):
    """Stops the run after the same call has failed in the same way, with no call between them that succeeded.

    Each costs a request, and none helps.
    """

    async def after_results(self, state: RunState) -> None:
        """See `Hooks`."""
        for (name, _, _), count in _count_failures(state.conversation).items():
            if count >= REPETITIONS:
                state.stop("repetition", f"{name} failed {count} times in the same way, with the same arguments")


def _count_failures(conversation: Conversation) -> dict[tuple[str, str, str], int]:
    """Count the calls that failed, by name, arguments and reason, back to the question or the last that succeeded."""
    counts: dict[tuple[str, str, str], int] = {}
    results: dict[str, ToolResult] = {}
    for message in reversed(conversation.messages):
        if message.role == "user":
            break
        if message.role == "tool":
            if not message.result.is_error:
                break
            results[message.result.call_id] = message.result
        for call in message.calls:
            result = results.get(call.id)
            if isinstance(call, ToolCall) and result is not None:
                reason = result.text.partition("\n")[0]  # what follows may count the failures, or tell times
                key = (call.name, call.arguments, reason)
                counts[key] = counts.get(key, 0) + 1
    return counts
