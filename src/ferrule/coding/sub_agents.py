"""`task`: hands a part of the work to a sub-agent, which has a context of its own; only its answer comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

from ferrule.agent.hooks import RunState
from ferrule.agent.pipeline import HooksSource, Pipeline
from ferrule.agent.sub_agents import get_answer, run_sub_agent
from ferrule.agent.tool_search import NAME as SEARCH
from ferrule.coding.agent import prepare_pipeline
from ferrule.coding.instructions import frame_instructions, read_project_instructions
from ferrule.errors import ToolFailed, ToolRetry
from ferrule.execution import Policy
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.registry import find_nearest_names
from ferrule.tools.scope import CallScope

if TYPE_CHECKING:
    from ferrule.tools.registry import BoundRegistry

NAME = "task"
_SHELL = "bash"
_OF_THE_RUN_ALONE = (NAME, "todo", "stop_job", SEARCH)
"""What sub-agents aren't given unless it is named: the plan, the jobs and the search are those of the run above."""
DEEPEST = 2
"""How deep sub-agents may start further ones."""
ROUNDS = 50
"""The most requests of one sub-agent; they also count towards the limit of the run that started it."""

_DESCRIPTION = (
    "Hand a part of the work to a sub-agent. It starts with an empty conversation, works in the same folder by itself, "
    "and its last message is the result. Good for what takes much reading and has a short answer. Several in one "
    "message work at the same time."
)
_SYSTEM = (
    "You are a sub-agent: another agent has given you one task in the project in {folder}. Do this task and nothing "
    "else. Nobody can answer questions. Your last message is all that is handed back: give the answer there, with the "
    "paths and lines that it rests on, and say what you couldn't do."
)

Prompt = Annotated[str, "The whole task, with everything that must be known for it and what to answer"]
Names = Annotated[
    list[str] | None, "The tools that it may use, by name; by default those that only read, and bash to read"
]


def make_task_tool(folder: Path, hooks: Sequence[HooksSource] = ()) -> Tool:
    """Make the tool `task` for the project in `folder`; `hooks` steer each sub-agent's loop.

    A sub-agent is asked of the same model as the run that calls it, under that run's policy, limits, approver and
    journal. Without names of tools it is offered those that only read, under the profile `plan`.
    """

    # Starting one changes nothing: each call that it makes is judged by itself.
    @tool(name=NAME, description=_DESCRIPTION, read_only=True)
    async def task(prompt: Prompt, scope: CallScope, tools: Names = None) -> str:
        state = scope.run_state
        if not isinstance(state, RunState):
            raise ToolFailed("a sub-agent needs the model of a run, and this call isn't part of one")
        if state.depth >= DEEPEST:
            raise ToolFailed(f"sub-agents are nested {DEEPEST} deep already; do this without one")
        if not prompt.strip():
            raise ToolRetry("the prompt is empty; say what the sub-agent must do")
        instructions = await asyncio.to_thread(read_project_instructions, folder)
        system = "\n\n".join([_SYSTEM.format(folder=folder), *map(frame_instructions, instructions)])
        pipeline = _make_pipeline(state, prompt, tools, system, hooks)
        run = await run_sub_agent(pipeline, scope, NAME, shorten(prompt, 60, placeholder="…"))
        return str(get_answer(run, "the sub-agent")) or "[the sub-agent answered nothing]"

    return task


def _make_pipeline(
    state: RunState, prompt: str, names: Sequence[str] | None, system: str, hooks: Sequence[HooksSource]
) -> Pipeline:
    policy = None if names is not None else Policy(profile="plan", trusted=state.policy.trusted)
    chosen = _select_tools(state, names)
    # What a hook set for one request, such as a tool that must be called, is not for the sub-agent.
    settings = state.request.settings.model_copy(update={"choice": None, "output_schema": None})
    pipeline = prepare_pipeline(Pipeline(state.model, settings=settings)).system(system)
    return pipeline.using(*chosen, policy=policy).within(rounds=ROUNDS).hook(*hooks).chat(prompt)


def _select_tools(state: RunState, names: Sequence[str] | None) -> list[Tool]:
    """Select tools of the run: those named, or those that only read. Raises `ToolRetry` for an unknown name.

    Among those that only read is bash: under the profile `plan`, it runs the commands that do.
    """
    offered: BoundRegistry = state.registry
    if names is None:
        trusts = state.policy.trusts
        reading = (one for one in offered if one.annotations.read_only is True or one.name == _SHELL)
        return [one for one in reading if one.name not in _OF_THE_RUN_ALONE and trusts(one.origin)]
    unknown = [name for name in names if name not in offered]
    if unknown:
        near = find_nearest_names(unknown[0], offered.names)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(offered.names)}"
        raise ToolRetry(f"there is no tool {unknown[0]!r} to give to a sub-agent; {hint}")
    return [one for one in offered if one.name in names]
