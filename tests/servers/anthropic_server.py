"""Anthropic's Messages API as a server on loopback: its events, its errors, and what it refuses to take."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scripted_http import Ending, Reply, Request, ScriptedServer, json_reply

KEY = "test-key"
Block = dict[str, Any]


def sign(thought: str) -> str:
    """The signature of a thought, by which it is known again."""
    return "Eq+/" + hashlib.sha256(thought.encode()).hexdigest() + "=="


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def thinking(thought: str) -> Block:
    return {"type": "thinking", "thinking": thought, "signature": sign(thought)}


def redacted(data: str) -> Block:
    return {"type": "redacted_thinking", "data": data}


def call(identifier: str, name: str, arguments: Any) -> Block:
    """A call; arguments given as text are sent as they are, whether they are JSON or not."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"type": "tool_use", "id": identifier, "name": name, "raw": raw}


def event(kind: str, **content: Any) -> bytes:
    """One event, as it is written on the wire."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **content}, ensure_ascii=False)}\n\n".encode()


def events(*blocks: Block, stop: str = "end_turn", usage: Mapping[str, int] | None = None) -> list[bytes]:
    """All the events of an answer, with pings in between."""
    read = {"input_tokens": 10, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 20, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": []}
    start = {**message, "stop_reason": None, "stop_sequence": None, "usage": {**read, **(usage or {})}}
    written = [event("message_start", message=start), event("ping")]
    for index, block in enumerate(blocks):
        written.append(event("content_block_start", index=index, content_block=_opening(block)))
        written += [event("content_block_delta", index=index, delta=delta) for delta in _deltas(block)]
        written += [event("ping"), event("content_block_stop", index=index)]
    ending = {"stop_reason": stop, "stop_sequence": None}
    written.append(event("message_delta", delta=ending, usage={"output_tokens": 7}))
    return [*written, event("message_stop")]


def _opening(block: Block) -> Block:
    if block["type"] == "tool_use":
        return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
    if block["type"] == "redacted_thinking":
        return block
    return {**block, **{key: "" for key in ("text", "thinking", "signature") if key in block}}


def _deltas(block: Block) -> Iterator[Block]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in _pieces(block["text"]))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"]))
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "tool_use":
        yield {"type": "input_json_delta", "partial_json": ""}
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in _pieces(block["raw"]))


def _pieces(words: str, size: int = 5) -> Iterator[str]:
    return (words[start : start + size] for start in range(0, len(words), size))


def answer(*blocks: Block, stop: str | None = None) -> Reply:
    """A whole answer. It stops as real ones do, unless told otherwise."""
    calls = any(block["type"] == "tool_use" for block in blocks)
    return Reply(events(*blocks, stop=stop or ("tool_use" if calls else "end_turn")))


def broken(*blocks: Block, after: bytes, ending: Ending = "dropped") -> Reply:
    """An answer that stops right after the bytes `after` have appeared in it for the first time."""
    data = b"".join(events(*blocks))
    place = data.index(after) + len(after)
    return Reply([data[:place]], ending=ending)


def error(status: int, kind: str, message: str, **headers: str) -> Reply:
    """An error, in the API's shape."""
    return json_reply(status, {"type": "error", "error": {"type": kind, "message": message}}, **headers)


def error_event(kind: str, message: str) -> bytes:
    """An error that comes in the middle of an answer."""
    return event("error", error={"type": kind, "message": message})


class AnthropicServer(ScriptedServer):
    """It takes what the API takes, refuses what it refuses, and follows its script otherwise."""

    def __init__(self, *script: Reply) -> None:
        super().__init__(_judge, *script)


def _judge(request: Request) -> Reply | None:
    if request.headers.get("authorization") != f"Bearer {KEY}" and request.headers.get("x-api-key") != KEY:
        return error(401, "authentication_error", "invalid x-api-key")
    if request.path != "/v1/messages":
        return error(404, "not_found_error", f"no such path {request.path}")
    if request.body["model"].startswith("claude-nothing"):
        return error(404, "not_found_error", f"model: {request.body['model']}")
    try:
        _check(request.body, request.headers["anthropic-version"])
    except AssertionError as refused:
        return error(400, "invalid_request_error", str(refused))
    return None


def _check(body: Mapping[str, Any], version: str) -> None:
    """What the API is known to answer with a 400."""
    assert isinstance(body.get("max_tokens"), int), "max_tokens: Field required"
    assert body["messages"], "messages: at least one message is required"
    assert body["messages"][0]["role"] == "user", "messages: first message must use the user role"
    for name in ("temperature", "top_p", "top_k"):
        assert name not in body or version == "2023-06-01", f"{name}: Extra inputs are not permitted"
    for tool in body.get("tools", ()):
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"]), f"tools: bad name {tool['name']!r}"
        assert tool["input_schema"]["type"] == "object", "tools: input_schema.type: Field required"
    open_calls: list[str] = []
    for position, message in enumerate(body["messages"]):
        open_calls = _check_message(message, f"messages.{position}", open_calls)
    assert not open_calls, f"tool_use ids were found without tool_result blocks: {open_calls}"
    blocks = [*body.get("tools", ()), *body.get("system", ())]
    blocks += [block for message in body["messages"] for block in message["content"]]
    marks = sum("cache_control" in block for block in blocks)
    assert marks <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."


def _check_message(message: Mapping[str, Any], where: str, open_calls: Sequence[str]) -> list[str]:
    content = message["content"]
    assert content, f"{where}: content must be non-empty"
    answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    assert sorted(answered) == sorted(open_calls), f"{where}: results of {answered} for the calls {list(open_calls)}"
    kinds = [block["type"] for block in content[: len(answered)]]
    assert set(kinds) <= {"tool_result"}, f"{where}: tool_result blocks must come first"
    for block in content:
        kind = block["type"]
        if kind == "text":
            assert block["text"], f"{where}: text content blocks must be non-empty"
        elif kind == "thinking":
            assert block["signature"] == sign(block["thinking"]), f"{where}: Invalid `signature` in `thinking` block"
            assert "cache_control" not in block, f"{where}: thinking blocks can't be cached"
        elif kind == "tool_use":
            assert message["role"] == "assistant", f"{where}: tool_use in a user's message"
            assert re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]), f"{where}: tool_use.id {block['id']!r}"
            assert isinstance(block["input"], dict), f"{where}: tool_use.input: Input should be a valid dictionary"
    return [block["id"] for block in content if block["type"] == "tool_use"]
