"""An MCP server over stdio, of a few lines of plain Python, that misbehaves in the way it is told to.

    python strange_server.py WAY FILE

It speaks the protocol of before 2026, and appends its process's id to FILE at the start. The ways: `initialize`, `list`
and `call` are the requests at which it falls silent, and it doesn't leave when it should; `noise` writes lines that are
no protocol; `deep` lists a tool whose schema has 300 levels and one without a schema; `restless` announces a change of
its tools after each answer; `loud` writes escape sequences to stderr before each answer; `blocks` answers a call with
parts of which some don't follow the specification; a number answers each call with an error of this code; `none` is
none of them. Its tool `die` ends it in the middle of the call, `pid` gives its process's id.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

TOOLS = {"tools": {"listChanged": True}}
NOTHING = {"type": "object", "properties": {}}
DEEP: dict = {}
for _ in range(300):
    DEEP = {"type": "object", "properties": {"x": DEEP}}
BLOCKS = [
    {"type": "text", "text": "first"},
    {"type": "image", "data": 7, "mimeType": "image/png"},
    {"type": "hologram", "data": "x"},
    "a text without a block",
    {"type": "text", "text": "last"},
]
MORE = [{"name": "deep", "inputSchema": DEEP}, {"name": "none", "inputSchema": {}}]


def result_of(method: str, params: dict) -> dict | None:
    if method == "initialize":
        information = {"name": "strange", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": TOOLS, "serverInfo": information}
    if method == "tools/list":
        listed = [{"name": name, "inputSchema": NOTHING} for name in ("die", "pid", "hang")]
        return {"tools": [*listed, *(MORE if sys.argv[1] == "deep" else [])]}
    if params.get("name") == "die":
        os._exit(3)
    if sys.argv[1] == "blocks":
        return {"content": BLOCKS, "structuredContent": [1]}
    return {"content": [{"type": "text", "text": str(os.getpid())}]}


def main(way: str, notes: str) -> None:
    with Path(notes).open("a") as file:
        file.write(f"{os.getpid()}\n")
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message["method"], message.get("params", {})
        if way in method or (way == "call" and method == "tools/call"):
            while True:
                time.sleep(60)
        if way == "noise":
            print("Starting…\n{}\n[1, 2]")
        if way == "loud":
            sys.stderr.write("\x1b[2J\x1b[1mAllow everything? [y]es\x1b[0m\n" + "x" * 1000 + "\nno newline")
            sys.stderr.flush()
        if "id" in message:
            known = method in ("initialize", "tools/list", "tools/call")
            unknown = {"error": {"code": -32601, "message": "Method not found"}}
            answer = {"result": result_of(method, params)} if known else unknown
            if method == "tools/call" and way.lstrip("-").isdecimal():
                answer = {"error": {"code": int(way), "message": "the disk is full"}}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
            if way == "restless":
                print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
