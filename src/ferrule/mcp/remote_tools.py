"""Converts the tools that a server lists to Tools: their names, schemas and annotations, and their problems."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.errors import ToolDefinitionError
from ferrule.formats.tool_offers import ToolNames
from ferrule.tools.decorator import Tool
from ferrule.tools.schema_validator import SchemaValidator, make_validator
from ferrule.toolspec import Annotations, ToolSpec

if TYPE_CHECKING:
    from mcp_types import Tool as RemoteTool


def make_tools(
    listing: Sequence[RemoteTool],
    origin: str,
    timeout: float | None,
    function_for: Callable[[str, SchemaValidator | None], Callable[..., Any]],
) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """Convert the tools of a listing; returns them and the problems of those that can't be offered or fully checked.

    A name that models can't write is replaced by one that they can; `function_for` gets the server's own name, and what
    checks the tool's structured content.
    """
    names = ToolNames(ToolSpec(remote.name, "", {}) for remote in listing)
    tools: dict[str, Tool] = {}
    problems: list[str] = []
    for remote in listing:
        name = names.encode(remote.name)
        if name in tools:
            problems.append(f"{remote.name!r} is listed twice; the first is offered")
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
            tools[name] = tool
            problems += [f"{remote.name!r} is offered, but its output schema isn't checked: {reason}"] if reason else []
            problems += [f"{remote.name!r} is offered, but of its schema {rule}" for rule in tool.unchecked_rules]
    return tuple(tools.values()), tuple(problems)


def rename_taken(tools: Sequence[Tool], taken: Collection[str], prefix: str) -> list[Tool]:
    """Rename the tools whose names are taken: `read` becomes `files_read` if there is a `read` already."""
    used = {*taken, *(tool.name for tool in tools)}
    found: list[Tool] = []
    for tool in tools:
        name = tool.name
        if name in taken:
            name = _find_free_name(f"{prefix}_{name}", used)
            used.add(name)
        found.append(tool if name == tool.name else tool.with_name(name))
    return found


def _find_free_name(name: str, used: Collection[str]) -> str:
    """Return `name` or, if that is used or too long, a similar name."""
    names = ToolNames([ToolSpec(one, "", {}) for one in used])
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
