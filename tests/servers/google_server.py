"""The Gemini API as a server on loopback: its chunks, its errors, and what it refuses to take."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from scripted_http import Ending, Reply, Request, ScriptedServer, json_reply

KEY = "test-key"
UNSIGNED = "skip_thought_signature_validator"
Part = dict[str, Any]


def sign(what: str) -> str:
    """The signature of something, by which it is known again."""
    return base64.b64encode(hashlib.sha256(what.encode()).digest()).decode("ascii")


def text(words: str, signed: bool = False) -> Part:
    return {"text": words, **({"thoughtSignature": sign(words)} if signed else {})}


def thought(words: str) -> Part:
    return {"text": words, "thought": True}


def call(name: str, arguments: Any, identifier: str | None = None, signed: bool = False) -> Part:
    written = {"name": name, "args": arguments, **({"id": identifier} if identifier else {})}
    return {"functionCall": written, **({"thoughtSignature": sign(name)} if signed else {})}


def chunks(*parts: Part, stop: str | None = "STOP", message: str | None = None) -> list[bytes]:
    """The chunks of an answer, one part each; the last one says why it stopped and what it cost."""
    written = []
    for index, part in enumerate(parts or ({"text": ""},)):
        is_last = index + 1 >= len(parts)
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
        if is_last and stop is not None:
            candidate["finishReason"] = stop
            if message is not None:
                candidate["finishMessage"] = message
        usage = {"promptTokenCount": 30, "cachedContentTokenCount": 20, "candidatesTokenCount": 5}
        counted = {**usage, "thoughtsTokenCount": 2, "totalTokenCount": 37}
        written.append(chunk({"candidates": [candidate], "usageMetadata": counted, "modelVersion": "gemini-test"}))
    return written


def chunk(content: Any) -> bytes:
    """One chunk, as it is written on the wire."""
    return f"data: {json.dumps(content, ensure_ascii=False)}\r\n\r\n".encode()


def answer(*parts: Part, stop: str | None = "STOP", message: str | None = None) -> Reply:
    return Reply(chunks(*parts, stop=stop, message=message))


def broken(*parts: Part, after: bytes, ending: Ending = "dropped") -> Reply:
    """An answer that stops right after the bytes `after` have appeared in it for the first time."""
    data = b"".join(chunks(*parts))
    place = data.index(after) + len(after)
    return Reply([data[:place]], ending=ending)


def error(status: int, kind: str, message: str, details: Sequence[Any] = (), **headers: str) -> Reply:
    """An error, in the API's shape."""
    body = {"code": status, "message": message, "status": kind, "details": list(details)}
    return json_reply(status, {"error": body}, **headers)


class GoogleServer(ScriptedServer):
    """It takes what the API takes, refuses what it refuses, and follows its script otherwise."""

    def __init__(self, *script: Reply) -> None:
        super().__init__(_judge, *script)


def _judge(request: Request) -> Reply | None:
    if request.headers.get("x-goog-api-key") != KEY:
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        return error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", [info])
    found = re.fullmatch(r"/v1(?:beta)?/models/([^:]+):streamGenerateContent\?alt=sse", request.path)
    if found is None or found[1].startswith("gemini-nothing"):
        name = found[1] if found else request.path
        return error(404, "NOT_FOUND", f"models/{name} is not found for API version v1")
    try:
        _check(request.body, must_sign=found[1].startswith("gemini-3"))
    except AssertionError as refused:
        return error(400, "INVALID_ARGUMENT", str(refused))
    return None


def _check(body: Mapping[str, Any], must_sign: bool) -> None:
    """What the API is known to answer with a 400."""
    assert body["contents"], "contents is not specified"
    for tool in body.get("tools", ()):
        for declared in tool["functionDeclarations"]:
            assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", declared["name"]), f"Invalid {declared['name']!r}"
            assert "parameters" not in declared, "the schema is to go as parametersJsonSchema"
    open_calls: list[Mapping[str, Any]] = []
    for content in body["contents"]:
        parts = content["parts"]
        assert content["role"] in ("user", "model"), "Please use a valid role: user, model."
        assert parts, "Unable to submit request because it must include at least one parts field"
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        given, asked = [_known_by(made) for made in answers], [_known_by(made) for made in open_calls]
        assert given == asked, f"the function response parts {given} are not those of the function call parts {asked}"
        calls = [part for part in parts if "functionCall" in part]
        for part in parts:
            _check_signature(part, must_sign and part in calls[:1])
        open_calls = [part["functionCall"] for part in calls]
    assert not open_calls, "a function call turn must be followed by a function response turn"


def _known_by(made: Mapping[str, Any]) -> tuple[Any, Any]:
    return made.get("id"), made["name"]


def _check_signature(part: Part, must_sign: bool) -> None:
    signature = part.get("thoughtSignature")
    if signature is None:
        assert not must_sign, f"Function call {part['functionCall']['name']} is missing a thought_signature"
        return
    found = signature.replace("-", "+").replace("_", "/")
    real = sign(part["functionCall"]["name"] if "functionCall" in part else part["text"])
    if signature != UNSIGNED:
        assert found == real, "Thought signature is not valid"
