"""Our server for the official conformance suite: the tools that its scenarios name, as far as ferrule can express them.

Prints its address. What ferrule doesn't serve (audio, resources, prompts, …) isn't imitated here.
"""

from __future__ import annotations

import asyncio
import base64

from ferrule import CallScope, Image, Text, ToolFailed, ToolRegistry, tool
from ferrule.execution import Policy
from ferrule.mcp import serve
from ferrule.tools.decorator import Tool

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
MIRRORED = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}


@tool
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@tool
def test_image_content() -> Image:
    """Return a picture."""
    return Image(PIXEL, "image/png")


@tool
def test_multiple_content_types() -> list[Text | Image]:
    """Return a text and a picture."""
    return [Text("Multiple content types test:"), Image(PIXEL, "image/png")]


@tool
def test_error_handling() -> str:
    """Fail."""
    raise ToolFailed("This tool intentionally returns an error for testing")


@tool
async def test_tool_with_progress(scope: CallScope) -> str:
    """Report progress three times."""
    for fraction in (0.0, 0.5, 1.0):
        scope.report_progress(f"at {fraction:.0%}", fraction)
        await asyncio.sleep(0.05)
    return "done"


def show(**arguments: object) -> str:
    """Return what it was called with."""
    return str(arguments)


TOOLS = [
    test_simple_text,
    test_image_content,
    test_multiple_content_types,
    test_error_handling,
    test_tool_with_progress,
    Tool.from_schema("json_schema_2020_12_tool", "Take an address.", SCHEMA, show),
    Tool.from_schema("show_region", "Take a parameter that a header repeats.", MIRRORED, show),
]

if __name__ == "__main__":
    asyncio.run(
        serve(
            ToolRegistry(TOOLS),
            policy=Policy(profile="all"),
            transport="http",
            on_ready=lambda address: print(address, flush=True),
        )
    )
