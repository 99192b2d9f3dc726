"""Converts the tools that a server lists to Tools: their names, schemas and annotations, and their problems."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ferrule.errors import ToolDefinitionError
from ferrule.formats.tool_offers import ToolNames
from ferrule.tools.decorator import Tool
from ferrule.tools.schema_validator import SchemaValidator, make_validator
from ferrule.toolspec import Annotations, ToolSpec

if TYPE_CHECKING:
    from mcp_types import Tool as RemoteTool

_LONGEST_INSTRUCTIONS = 4_000


def make_tools(
    listing: Sequence[RemoteTool],
    instructions: str,
    origin: str,
    timeout: float | None,
    function_for: Callable[[str, SchemaValidator | None], Callable[..., Any]],
) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """Convert the tools of a listing; returns them and the problems of those that can't be offered or fully checked.

    `instructions` are the server's for all of its tools, as `quote_instructions` writes them. A name that models can't
    write is replaced by one that they can; `function_for` gets the server's own name, and what checks the tool's
    structured content.
    """
    names = ToolNames(ToolSpec(remote.name, "", {}) for remote in listing)
    tools: dict[str, Tool] = {}
    problems: list[str] = []
    for remote in listing:
        name = names.encode(remote.name)
        if name in tools:
            problems.append(f"{remote.name!r} is listed twice; the first is offered")
            continue
        if remote.execution is not None and remote.execution.task_support == "required":
            problems.append(f"{remote.name!r} is not offered: it can only be run as a task, which isn't supported")
            continue
        validator, reason = (None, "") if remote.output_schema is None else make_validator(remote.output_schema)
        try:
            tool = Tool.from_schema(
                name,
                remote.description or "",
                remote.input_schema,
                function_for(remote.name, validator),
                output_schema=None if validator is None else remote.output_schema,
                annotations=_read_annotations(remote),
                origin=origin,
                timeout=timeout,
            )
            _ = tool.spec  # an invalid schema is found only here
        except ToolDefinitionError as error:
            problems.append(f"{remote.name!r} is not offered: {error}")
        else:
            tools[name] = replace(tool, instructions=instructions)
            problems += [f"{remote.name!r} is offered, but its output schema isn't checked: {reason}"] if reason else []
            problems += [f"{remote.name!r} is offered, but of its schema {rule}" for rule in tool.unchecked_rules]
    return tuple(tools.values()), tuple(problems)


def quote_instructions(server: str, text: str) -> str:
    """Write a server's instructions for a model: bounded, and each line marked as the server's, not the user's."""
    text = text.strip()
    if not text:
        return ""
    left_out = len(text) - _LONGEST_INSTRUCTIONS
    if left_out > 0:
        text = f"{text[:_LONGEST_INSTRUCTIONS]}… ({left_out:,} characters are left out)"
    quoted = "\n".join(f"> {line}" for line in text.splitlines())
    return f"The MCP server {server!r} says how to use its tools. These are its words, not the user's:\n{quoted}"


def rename_taken(tools: Sequence[Tool], taken: Collection[str], prefix: str) -> list[Tool]:
    """Rename the tools whose names are taken: `read` becomes `files_read` if there is a `read` already."""
    used = {*taken, *(tool.name for tool in tools)}
    names = ToolNames([ToolSpec(one, "", {}) for one in used])
    found: list[Tool] = []
    for tool in tools:
        name = tool.name
        if name in taken:
            name = _find_free_name(f"{prefix}_{name}", used, names)
            used.add(name)
        found.append(tool if name == tool.name else tool.with_name(name))
    return found


def _find_free_name(name: str, used: Collection[str], names: ToolNames) -> str:
    """Return `name` or, if that is used or too long, a similar name."""
    chosen = names.encode(name) if len(name) <= 64 else names.encode(f"{name} ")
    number = 2
    while chosen in used:
        chosen = names.encode(f"{name[:58]}_{number}")
        number += 1
    return chosen


def _read_annotations(remote: RemoteTool) -> Annotations:
    said = remote.annotations
    if said is None:
        return Annotations()
    return Annotations(said.read_only_hint, said.destructive_hint, said.idempotent_hint, said.open_world_hint)
