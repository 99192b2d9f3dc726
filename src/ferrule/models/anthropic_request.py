"""The request that Anthropic's Messages API is sent: what is offered, how it should answer, what it may cache. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrule.errors import ModelError
from ferrule.formats.names import ToolNames
from ferrule.formats.schemas import parameters_schema
from ferrule.models.hosted import version_of
from ferrule.models.protocol import ModelSettings, refuse_unoffered_choice
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
    refuse_unoffered_choice(settings, tools, model)
    if choice := _choice(settings, tools, names):
        request["tool_choice"] = choice
    if settings.stop:
        request["stop_sequences"] = list(settings.stop)
    _think(request, settings)
    if settings.output_schema is not None:
        request.setdefault("output_config", {})["format"] = {"type": "json_schema", "schema": settings.output_schema}
    sampling = settings.given(*_SAMPLING)
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
        return None
    if settings.choice is None:
        return {"type": "auto", **alone} if alone else None
    if settings.choice == "none":
        return {"type": "none"}
    if settings.choice in ("auto", "required"):
        return {"type": "auto" if settings.choice == "auto" else "any", **alone}
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
