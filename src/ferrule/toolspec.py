"""What a tool *is*, as data: the part of it that can be offered, stored, compared and sent.

The callable behind it lives one floor up, in `tools/decorator.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

JSONSchema = Mapping[str, Any]
"""A JSON Schema object (draft 2020-12), as decoded JSON."""

Approval = Literal["always", "never"]
"""What a tool itself requires: approval of every call, or of none."""


@dataclass(frozen=True, slots=True)
class Annotations:
    """Hints on what a call does, with the names of the Model Context Protocol's `ToolAnnotations`.

    `None` means unspecified. Hints from an untrusted origin can only tighten a policy.
    """

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolExample:
    """An author's example of a call: its arguments, and the result that it should have; `...` if none is expected.

    `ferrule tools check --run` calls the tool and compares what the model would read. No model sees it.
    """

    arguments: Mapping[str, Any]
    result: Any = ...


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """The Toolset whose methods the tools are; notations with groups write it into the offer."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool's data alone: what is offered to a model and what a policy judges.

    `origin` says where it comes from: `code`, `project` (a discovered file), `plugin`, or `mcp:<server>`.
    `name` is unique among the tools on offer, whatever their `group`, which is never needed to identify a tool.
    """

    name: str
    description: str
    parameters: JSONSchema
    annotations: Annotations = field(default_factory=Annotations)
    origin: str = "code"
    approval: Approval | None = None
    group: ToolGroup | None = None


def render_openai_function(spec: ToolSpec) -> dict[str, Any]:
    """The tool's name, description and parameters, with the keys and in the order of OpenAI's API."""
    return {"name": spec.name, "description": spec.description, "parameters": spec.parameters}


def render_openai_tool(spec: ToolSpec) -> dict[str, Any]:
    """The tool as an entry of `tools` in OpenAI's Chat Completions, which most chat templates also accept."""
    return {"type": "function", "function": render_openai_function(spec)}
