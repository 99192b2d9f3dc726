"""OpenAI's two APIs as a server on loopback: their events, their errors, and what they refuse to take."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scripted_http import Ending, Reply, Request, ScriptedServer, json_reply

KEY = "test-key"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CHAT_FIELDS = frozenset(
    {"model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls", "temperature"}
    | {
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "response_format",
        "seed",
        "reasoning_effort",
        "metadata",
    }
)
_RESPONSES_FIELDS = frozenset(
    {"model", "input", "stream", "store", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p"}
    | {"max_output_tokens", "reasoning", "text", "metadata"}
)

Fields = dict[str, Any]


def server(*script: Reply, judge: Any = None) -> ScriptedServer:
    """A server that takes what OpenAI takes, unless another judge is given."""
    return ScriptedServer(judge or openai_judge, *script)


def lenient(_: Request) -> None:
    """The judge of a server that takes anything."""


def event(data: Any, kind: str = "") -> bytes:
    """One event, as it is written on the wire."""
    name = f"event: {kind}\n" if kind else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def error_body(message: str, code: str | None = None, kind: str = "invalid_request_error") -> Fields:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def refused(status: int, message: str, code: str | None = None, **headers: str) -> Reply:
    """An error as OpenAI sends it; a header's name has `_` for `-`."""
    return json_reply(status, error_body(message, code), **headers)


# Chat completions.

USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25, "prompt_tokens_details": {"cached_tokens": 8}}


def chunk(delta: Fields | None = None, finish: str | None = None, **more: Any) -> bytes:
    """One chunk of a chat completion; without a delta, one that has no choice."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return event({**head, "choices": choices, **more})


def chunks(*deltas: Fields, finish: str | None = "stop", usage: bool = True) -> list[bytes]:
    """All the events of an answer of these deltas."""
    written = [chunk({"role": "assistant", "content": ""}), *map(chunk, deltas)]
    if finish:
        written.append(chunk({}, finish))
    if usage:
        written.append(chunk(usage=USAGE))
    return [*written, b"data: [DONE]\n\n"]


def chat(*deltas: Fields, ending: Ending = "whole", **options: Any) -> Reply:
    """An answer of these deltas; one that doesn't end whole ends after the last of them."""
    if ending != "whole":
        return Reply(chunks(*deltas, finish=None, usage=False)[:-1], ending=ending)
    return Reply(chunks(*deltas, **options))


def says(*texts: str, **options: Any) -> Reply:
    """An answer in words."""
    return chat(*({"content": text} for text in texts), **options)


def piece(index: int | None = None, arguments: Any = None, name: str | None = None, call_id: str = "") -> Fields:
    """A delta with a piece of one call."""
    return {"tool_calls": [call(index, arguments, name, call_id)]}


def call(index: int | None = None, arguments: Any = None, name: str | None = None, call_id: str = "") -> Fields:
    """A piece of a call, with what is given of it."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    found: Fields = {"index": index, "id": call_id, "type": "function", "function": function}
    return {key: value for key, value in found.items() if value not in (None, "")}


def calls(*entries: tuple[str, str, str], **options: Any) -> Reply:
    """An answer of calls, each an id, a name and arguments: its head first, then its arguments in two pieces."""
    deltas: list[Fields] = []
    for index, (call_id, name, arguments) in enumerate(entries):
        middle = len(arguments) // 2
        deltas.append(piece(index, "", name, call_id))
        deltas += [piece(index, arguments[:middle]), piece(index, arguments[middle:])]
    return chat(*deltas, **{"finish": "tool_calls", **options})


# Responses.


def message_item(text: str, **more: Any) -> Fields:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content, **more}


def call_item(call_id: str, name: str, arguments: str) -> Fields:
    shared = {"type": "function_call", "id": f"fc_{call_id}", "status": "completed"}
    return {**shared, "call_id": call_id, "name": name, "arguments": arguments}


def reasoning_item(*summaries: str, number: int = 1) -> Fields:
    summary = [{"type": "summary_text", "text": text} for text in summaries]
    return {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": f"sealed-{number}"}


def responses(*items: Fields, end: str = "completed", ending: Ending = "whole", **response: Any) -> Reply:
    """An answer of these items; one that doesn't end whole ends before the last of them is done."""
    written = [{"type": "response.created", "response": _response("in_progress")}]
    for index, item in enumerate(items):
        written += _item_events(index, item)
    if ending == "whole":
        written.append({"type": f"response.{end}", "response": {**_response(end), **response}})
    else:
        written.pop()
    numbered = [event({"sequence_number": at, **one}, one["type"]) for at, one in enumerate(written)]
    return Reply(numbered, ending=ending)


def _response(status: str) -> Fields:
    usage = {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 25,
    }
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "output": [], "tools": []}
    return {**head, "status": status, "parallel_tool_calls": True, "tool_choice": "auto", "usage": usage}


def _item_events(index: int, item: Fields) -> Iterator[Fields]:
    """The events of one item: begun, its content in two pieces, and done."""
    where = {"output_index": index, "item_id": item["id"]}
    empty = {"function_call": {"arguments": ""}, "message": {"content": []}, "reasoning": {"summary": []}}
    yield {"type": "response.output_item.added", "output_index": index, "item": {**item, **empty[item["type"]]}}
    for half in _halves(item.get("arguments", "")):
        yield {"type": "response.function_call_arguments.delta", **where, "delta": half}
    for at, part in enumerate(item.get("content", ())):
        for half in _halves(part["text"]):
            yield {"type": "response.output_text.delta", **where, "content_index": at, "delta": half, "logprobs": []}
    for at, part in enumerate(item.get("summary", ())):
        yield {"type": "response.reasoning_summary_part.added", **where, "summary_index": at, "part": part}
        for half in _halves(part["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **where, "summary_index": at, "delta": half}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _halves(text: str) -> Sequence[str]:
    return [half for half in (text[: len(text) // 2], text[len(text) // 2 :]) if half]


# What OpenAI refuses.


def openai_judge(request: Request) -> Reply | None:
    """The reply to a request that OpenAI would refuse, None for one that it would take."""
    if request.headers.get("authorization") != f"Bearer {KEY}":
        return refused(401, "Incorrect API key provided", "invalid_api_key")
    checks = {"/v1/chat/completions": _of_chat, "/v1/responses": _of_responses}
    check = checks.get(request.path)
    if check is None:
        return refused(404, f"Invalid URL (POST {request.path})")
    wrong = next(check(request.body), None)
    return None if wrong is None else refused(400, wrong)


def _of_chat(body: Fields) -> Iterator[str]:
    yield from _of_fields(body, _CHAT_FIELDS)
    for tool in body.get("tools", ()):
        yield from _of_function(tool.get("function", {}))
    if "tools" not in body and {"tool_choice", "parallel_tool_calls"} & set(body):
        yield "'tool_choice' is only allowed when 'tools' are specified"
    waiting: list[str] = []
    for at, message in enumerate(body["messages"]):
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"messages.{at}: tool_call_id answers nothing"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"messages.{at}: tool_call_ids without a response: {waiting}"
        if role == "assistant":
            waiting = [one["id"] for one in message.get("tool_calls", ())]
            yield from _of_assistant(message, at)
        elif not message.get("content"):
            yield f"messages.{at}: content is missing"
    if waiting:
        yield f"tool_call_ids without a response: {waiting}"


def _of_assistant(message: Fields, at: int) -> Iterator[str]:
    unknown = set(message) - {"role", "content", "tool_calls", "refusal", "name"}
    if unknown:
        yield f"messages.{at}: unknown parameter {unknown}"
    if message.get("content") is None and not message.get("tool_calls") and not message.get("refusal"):
        yield f"messages.{at}: content may be null only with tool_calls"
    for one in message.get("tool_calls", ()):
        if len(one["id"]) > 40 or not _NAME.fullmatch(one["function"]["name"]):
            yield f"messages.{at}: an id that is too long, or a name that is not allowed"
        if not isinstance(one["function"]["arguments"], str):
            yield f"messages.{at}: arguments must be a string"


def _of_responses(body: Fields) -> Iterator[str]:
    yield from _of_fields(body, _RESPONSES_FIELDS)
    for tool in body.get("tools", ()):
        yield from _of_function(tool)
        if tool.get("strict") is not False:
            yield "a function that isn't strict must say so"
    waiting: set[str] = set()
    for at, item in enumerate(body["input"]):
        if item["type"] == "function_call":
            waiting.add(item["call_id"])
        elif item["type"] == "function_call_output":
            if item["call_id"] not in waiting:
                yield f"No tool call found for function call output with call_id {item['call_id']}"
            waiting.discard(item["call_id"])
        elif item["type"] == "reasoning":
            following = body["input"][at + 1 : at + 2]
            if not following or following[0].get("role", "assistant") != "assistant":
                yield f"Item {item['id']!r} of type 'reasoning' was provided without its required following item."
    if waiting:
        yield f"No tool output found for function call {waiting}"


def _of_fields(body: Fields, known: frozenset[str]) -> Iterator[str]:
    if unknown := set(body) - known:
        yield f"Unrecognized request argument supplied: {', '.join(sorted(unknown))}"
    if body["model"] == "gpt-unknown":
        yield "The model 'gpt-unknown' does not exist or you do not have access to it."


def _of_function(function: Mapping[str, Any]) -> Iterator[str]:
    if not _NAME.fullmatch(function["name"]):
        yield f"Invalid 'tools.function.name': {function['name']!r}"
    parameters = function["parameters"]
    if parameters.get("type") != "object" or "properties" not in parameters:
        yield f"Invalid schema for function {function['name']!r}: it must be of an object with properties"
