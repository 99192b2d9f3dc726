"""The request that Anthropic's Messages API is sent: what is offered, how it should answer, what it may cache. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrule.errors import ModelError
from ferrule.formats.names import ToolNames
from ferrule.formats.schemas import parameters_schema
from ferrule.models.hosted import version_of
from ferrule.models.protocol import ModelSettings
from ferrule.toolspec import ToolSpec

# The API's version 2026-10-21 takes no temperature, top_p or top_k; the one before it does, for the models that
# still know them.
SAMPLING_VERSION = "2023-06-01"
_SAMPLING = ("temperature", "top_k", "top_p")
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 24_576}
_LEAST_BUDGET = 1024
_CACHED = {"type": "ephemeral"}

Request = dict[str, Any]


def request_of(
    model: str, body: Request, tools: Sequence[ToolSpec], names: ToolNames, settings: ModelSettings, max_tokens: int
) -> Request:
    """The keyword arguments of `messages.create`; `body` is what `formats.anthropic.dump` wrote.

    Raises `ModelError` for a choice of a tool that isn't offered, and for a `max_tokens` that leaves no room to think.
    """
    request: Request = {"model": model, "max_tokens": settings.max_tokens or max_tokens, **body}
    if tools:
        request["tools"] = [_offer(spec, names) for spec in tools]
    if choice := _choice(settings, tools, names):
        request["tool_choice"] = choice
    if settings.stop:
        request["stop_sequences"] = list(settings.stop)
    _think(request, settings)
    if settings.output_schema is not None:
        request.setdefault("output_config", {})["format"] = {"type": "json_schema", "schema": settings.output_schema}
    sampling = {name: getattr(settings, name) for name in _SAMPLING if name in settings.model_fields_set}
    sampling = {name: value for name, value in sampling.items() if value is not None}
    if sampling:
        request["extra_headers"] = {"anthropic-version": SAMPLING_VERSION}
    if sampling or settings.extra:
        request["extra_body"] = {**sampling, **settings.extra}
    return request


def _offer(spec: ToolSpec, names: ToolNames) -> Request:
    offer = {"name": names.wire(spec.name), "input_schema": parameters_schema(spec.parameters)}
    return {**offer, "description": spec.description} if spec.description else offer


def _choice(settings: ModelSettings, tools: Sequence[ToolSpec], names: ToolNames) -> Request | None:
    alone = {"disable_parallel_tool_use": True} if settings.parallel_calls is False else {}
    if not tools:
        if settings.choice not in (None, "auto", "none"):
            raise ModelError(f"choice={settings.choice!r} asks for a call, and no tool is offered; offer one")
        return None
    if settings.choice is None:
        return {"type": "auto", **alone} if alone else None
    if settings.choice == "none":
        return {"type": "none"}
    if settings.choice in ("auto", "required"):
        return {"type": "auto" if settings.choice == "auto" else "any", **alone}
    if settings.choice not in {spec.name for spec in tools}:
        offered = ", ".join(spec.name for spec in tools)
        raise ModelError(f"choice={settings.choice!r} is no tool that is offered; choose among {offered}")
    return {"type": "tool", "name": names.wire(settings.choice), **alone}


def _think(request: Request, settings: ModelSettings) -> None:
    """How much to think: from Claude 4.6 on the model sees to that itself, within an effort; others have a budget."""
    if settings.effort is None:
        return
    if settings.effort == "none":
        request["thinking"] = {"type": "disabled"}
    elif version_of(request["model"]) >= (4, 6):
        request["thinking"] = {"type": "adaptive", "display": "summarized"}
        request["output_config"] = {"effort": "low" if settings.effort == "minimal" else settings.effort}
    else:
        budget = min(_BUDGETS[settings.effort], request["max_tokens"] - 1)
        if budget < _LEAST_BUDGET:
            raise ModelError(
                f"effort={settings.effort!r} takes {_LEAST_BUDGET} tokens at least and max_tokens, which counts them,"
                f" is {request['max_tokens']}; give more, or effort='none'"
            )
        request["thinking"] = {"type": "enabled", "budget_tokens": budget}


def mark_for_cache(request: Request) -> None:
    """Ask for what is sent to be kept, so that a conversation that grows is read from the cache but for its new end.

    There may be four marks: the last tool, the last of the system's words, the end of the messages, and where their
    end was when the model was last asked. Without that one, an end with more than 20 new blocks would find nothing.
    """
    for key in ("tools", "system"):
        if request.get(key):
            request[key][-1]["cache_control"] = _CACHED
    *earlier, last = request["messages"] or [{"role": "user", "content": []}]
    asked = [message for message in earlier if message["role"] == "user"]
    for message in [*asked[-1:], last]:
        fitting = [block for block in message["content"] if block["type"] not in ("thinking", "redacted_thinking")]
        if fitting:
            fitting[-1]["cache_control"] = _CACHED
