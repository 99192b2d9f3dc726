"""The settings of a request to the Gemini API, as its package takes them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrule.formats.names import ToolNames
from ferrule.formats.schemas import parameters_schema
from ferrule.models.hosted import version_of
from ferrule.models.protocol import ModelSettings, refuse_unoffered_choice
from ferrule.toolspec import ToolSpec

_BUDGETS = {"none": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 24_576}
_PLAIN = {"temperature": "temperature", "top_k": "top_k", "top_p": "top_p", "seed": "seed"}
_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}

Config = dict[str, Any]


def is_third_generation(model: str) -> bool:
    """Whether a model wants its calls back signed, takes images in results, and thinks by levels."""
    return version_of(model) >= (3, 0)


def config_of(model: str, tools: Sequence[ToolSpec], names: ToolNames, settings: ModelSettings) -> Config:
    """The fields of a `GenerateContentConfig`. Raises `ModelError` for a choice of a tool that isn't offered."""
    # What calls a tool here is the executor, never the package.
    config: Config = {"automatic_function_calling": {"disable": True}}
    if tools:
        config["tools"] = [{"function_declarations": [_offer(spec, names) for spec in tools]}]
    refuse_unoffered_choice(settings, tools, model)
    if choice := _choice(settings, tools, names):
        config["tool_config"] = {"function_calling_config": choice}
    config.update({_PLAIN[name]: value for name, value in settings.given(*_PLAIN).items()})
    if settings.max_tokens is not None:
        config["max_output_tokens"] = settings.max_tokens
    if settings.stop:
        config["stop_sequences"] = list(settings.stop)
    if settings.effort is not None:
        config["thinking_config"] = _thinking(model, settings.effort)
    if settings.output_schema is not None:
        config["response_mime_type"] = "application/json"
        config["response_json_schema"] = settings.output_schema
    if settings.extra:
        config["http_options"] = {"extra_body": settings.extra}
    return config


def _offer(spec: ToolSpec, names: ToolNames) -> Config:
    # The other field, `parameters`, knows a small part of JSON Schema only.
    return {
        "name": names.wire(spec.name),
        "description": spec.description,
        "parameters_json_schema": parameters_schema(spec.parameters),
    }


def _choice(settings: ModelSettings, tools: Sequence[ToolSpec], names: ToolNames) -> Config | None:
    choice = settings.choice
    if choice is None or not tools:
        return None
    if choice in _MODES:
        return {"mode": _MODES[choice]}
    return {"mode": "ANY", "allowed_function_names": [names.wire(choice)]}


def _thinking(model: str, effort: str) -> Config:
    """From Gemini 3 on a model can't be kept from thinking: its least is `minimal`."""
    if is_third_generation(model):
        level = "minimal" if effort == "none" else effort
        return {"thinking_level": level.upper(), "include_thoughts": effort != "none"}
    return {"thinking_budget": _BUDGETS[effort], "include_thoughts": effort != "none"}
