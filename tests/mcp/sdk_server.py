"""An MCP server made with the SDK's own low-level API, with a tool for each thing that may come back.

    python sdk_server.py [--http] [--legacy]

Over HTTP it prints its address. `--legacy` refuses the newest protocol, as older servers do.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import sys

import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import (
    METHOD_NOT_FOUND,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    RequestParams,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

LEGACY = "--legacy" in sys.argv
PIXEL = b"\x89PNG the bytes of an image"
NUMBERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
PATTERNS = {
    "type": "object",
    "properties": {"name": {"type": "string", "pattern": "^(a+)+$"}, "word": {"type": "string", "pattern": "(?=x)y"}},
}
ROWS = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "integer"}}}}
ODD = {"type": "object", "properties": {"x": {"type": 7}}}
NOTHING = {"type": "object", "properties": {}}
PLAIN = ("picture", "everything", "fail", "refuse", "steps", "wait", "waited", "toggle", "silent")


def listing() -> list[Tool]:
    tools = [Tool(name=name, description=f"It can {name}.", input_schema=NOTHING) for name in PLAIN]
    hints = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    return [
        Tool(name="add", description="Add two numbers.", input_schema=NUMBERS),
        Tool(name="erase", description="Says that it only reads.", input_schema=NOTHING, annotations=hints),
        Tool(name="files/read.all", description="A name that models can't write.", input_schema=NOTHING),
        Tool(name="odd", description="No schema.", input_schema=ODD),
        Tool(name="strict", description="Patterns.", input_schema=PATTERNS),
        Tool(name="table", description="Structured.", input_schema=NOTHING, output_schema=ROWS),
        Tool(name="wrong", description="Not as it says.", input_schema=NOTHING, output_schema=ROWS),
        Tool(name="untyped", description="Not a schema.", input_schema=NOTHING, output_schema=ODD),
        *tools,
    ]


tools = listing()
bus = InMemorySubscriptionBus()
cancelled = asyncio.Event()


async def list_tools(_context, _params):
    half = len(tools) // 2
    if _params is not None and _params.cursor == "rest":
        return ListToolsResult(tools=tools[half:])
    return ListToolsResult(tools=tools[:half], next_cursor="rest")


async def call_tool(context, params):
    arguments = params.arguments or {}
    return await HANDLERS[params.name](context, **arguments)


def said(*texts: str, **more) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text) for text in texts], **more)


async def add(_context, a, b):
    return said(str(a + b))


async def erase(_context):
    return said("erased")


async def read_all(_context):
    return said("all of it")


async def table(_context):
    return CallToolResult(content=[], structured_content={"rows": [1, 2]})


async def wrong(_context):
    return said("wrong", structured_content={"rows": ["one"]})


async def untyped(_context):
    return said("fine", structured_content={"said": "fine"})


async def silent(_context):
    return CallToolResult(content=[])


async def picture(_context):
    image = ImageContent(data=base64.b64encode(PIXEL).decode(), mime_type="image/png")
    return CallToolResult(content=[TextContent(text="look:"), image])


async def everything(_context):
    blob = base64.b64encode(b"12345").decode()
    return CallToolResult(
        content=[
            EmbeddedResource(resource=TextResourceContents(uri="file:///a", text="the text of a")),
            EmbeddedResource(resource=BlobResourceContents(uri="file:///b", blob=blob, mime_type="application/zip")),
            EmbeddedResource(
                resource=BlobResourceContents(
                    uri="file:///c", blob=base64.b64encode(PIXEL).decode(), mime_type="image/png"
                )
            ),
            AudioContent(data=blob, mime_type="audio/wav"),
            ImageContent(data="not base64!", mime_type="image/png"),
            ResourceLink(uri="file:///d", name="d"),
        ]
    )


async def fail(_context):
    return said("the disk is full", is_error=True)


async def refuse(_context):
    raise MCPError(-32602, "not today")


async def steps(context):
    for done in (1, 2, 4):
        await context.session.report_progress(done, 4, f"step {done}")
    return said("done")


async def wait(context):
    await context.session.report_progress(0, 1, "waiting")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        cancelled.set()
        raise


async def waited(_context):
    """Whether the last `wait` was cancelled, once it was."""
    async with asyncio.timeout(10):
        await cancelled.wait()
    cancelled.clear()
    return said("it was cancelled")


async def toggle(context):
    """Offer one tool more, or no longer."""
    if "grown" in HANDLERS:
        del HANDLERS["grown"]
        tools.pop()
    else:
        HANDLERS["grown"] = read_all
        tools.append(Tool(name="grown", description="It is new.", input_schema=NOTHING))
    await bus.publish(ToolsListChanged())
    if LEGACY:
        await context.session.send_tool_list_changed()
    return said("changed")


HANDLERS = {name: globals()[name] for name in (*PLAIN, "add", "erase", "table", "wrong", "untyped")} | {
    "files/read.all": read_all
}


async def no_discovery(_context, _params):
    raise MCPError(METHOD_NOT_FOUND, "Method not found")


def made() -> Server:
    server = Server(
        "trying", on_list_tools=list_tools, on_call_tool=call_tool, on_subscriptions_listen=ListenHandler(bus)
    )
    if LEGACY:
        server.add_request_handler("server/discover", RequestParams, no_discovery)
    return server


async def over_stdio() -> None:
    server = made()
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


async def over_http() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(made().streamable_http_app(), log_level="warning", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(over_http() if "--http" in sys.argv else over_stdio())
