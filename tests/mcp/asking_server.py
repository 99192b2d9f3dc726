"""An MCP server over stdio, of a few lines of plain Python, whose tools ask the client.

It speaks the protocol of before 2026. `capabilities` tells what the client declared; `form`, `open` and `sample` send a
question, and return the client's answer as JSON.
"""

from __future__ import annotations

import json
import sys

NOTHING = {"type": "object", "properties": {}}
FIELDS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Who you are", "minLength": 2},
        "age": {"type": "integer", "minimum": 0},
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
        "news": {"type": "boolean"},
        "days": {"type": "array", "items": {"type": "string", "enum": ["mon", "tue"]}},
    },
    "required": ["name", "news"],
}
FORMATS = {
    "type": "object",
    "properties": {
        "mail": {"type": "string", "format": "email"},
        "day": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time", "default": "2026-01-01T00:00:00Z"},
        "site": {"type": "string", "format": "uri"},
        "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"], "default": "l"},
        "colour": {"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#00f", "title": "Blue"}]},
        "days": {
            "type": "array",
            "items": {"anyOf": [{"const": "mon", "title": "Monday"}, {"const": "tue", "title": "Tuesday"}]},
            "default": ["tue"],
        },
        "news": {"type": "boolean", "default": True},
    },
    "required": ["mail", "day", "site", "colour"],
}
MESSAGES = [{"role": "user", "content": {"type": "text", "text": "Say hello."}}]
QUESTIONS = {
    "form": ("elicitation/create", {"message": "Who is there?\n\x1b[31mred", "requestedSchema": FIELDS}),
    "formats": ("elicitation/create", {"message": "Who?", "requestedSchema": FORMATS}),
    "open": (
        "elicitation/create",
        {"mode": "url", "message": "Log in", "url": "https://example.org/x", "elicitationId": "1"},
    ),
    "sample": ("sampling/createMessage", {"messages": MESSAGES, "maxTokens": 99_999, "systemPrompt": "Be short."}),
}


def send(**message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def ask(name: str) -> str:
    method, params = QUESTIONS[name]
    send(id=f"ask-{name}", method=method, params=params)
    for line in sys.stdin:
        answer = json.loads(line)
        if answer.get("id") == f"ask-{name}":
            return json.dumps(answer.get("result") or answer["error"])
    return ""


def main() -> None:
    declared: dict = {}
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params", {})
        if "id" not in message:
            continue
        if method == "initialize":
            declared = params["capabilities"]
            answer = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "asking", "version": "1"},
            }
        elif method == "tools/list":
            names = ("capabilities", *QUESTIONS)
            answer = {"tools": [{"name": name, "inputSchema": NOTHING} for name in names]}
        elif method == "tools/call":
            name = params["name"]
            text = json.dumps(declared) if name == "capabilities" else ask(name)
            answer = {"content": [{"type": "text", "text": text}]}
        else:
            send(id=message["id"], error={"code": -32601, "message": "Method not found"})
            continue
        send(id=message["id"], result=answer)


if __name__ == "__main__":
    main()
