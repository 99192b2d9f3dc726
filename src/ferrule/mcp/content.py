"""Results as they cross the protocol: an MCP result becomes parts that a model reads, a result of ours an MCP one.

What can't be shown (sound, bytes that are no image) becomes a note that says what was left out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ferrule.conversation import Image, Text, ToolResult

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, CallToolResult, ContentBlock, EmbeddedResource


def parts_of(result: CallToolResult) -> list[Text | Image]:
    """The parts of an MCP result, in order; structured content comes last, where no text says the same."""
    parts = [part for block in result.content for part in _parts(block)]
    if result.structured_content is not None and not _is_said(result.structured_content, parts):
        parts.append(Text(json.dumps(result.structured_content, ensure_ascii=False)))
    return parts


def failure_text(result: CallToolResult) -> str:
    """What a model is told of a call that the server says has failed: the text, and what else there was."""
    shown = [
        part.text if isinstance(part, Text) else _left_out(part.media_type, part.data) for part in parts_of(result)
    ]
    # An executor says "error: " before it, as that of the server may have done.
    return "\n".join(shown).removeprefix("error: ") or "the server says that the call failed, and not why"


def content_of(result: ToolResult) -> list[ContentBlock]:
    """A result of ours as MCP's content."""
    from mcp_types import ImageContent, TextContent

    return [
        TextContent(text=part.text)
        if isinstance(part, Text)
        else ImageContent(data=base64.b64encode(part.data).decode(), mime_type=part.media_type)
        for part in result.content
    ]


def _parts(block: ContentBlock) -> Iterator[Text | Image]:
    if block.type == "text":
        yield Text(block.text)
    elif block.type == "image":
        yield _image(block.data, block.mime_type)
    elif block.type == "audio":
        yield Text(_left_out(block.mime_type, _decoded(block.data)))
    elif block.type == "resource":
        yield _resource(block)
    else:
        about = f" ({block.description})" if block.description else ""
        yield Text(f"[a link to the resource {block.uri}, {block.name}{about}; its content was not sent]")


def _resource(block: EmbeddedResource) -> Text | Image:
    from mcp_types import TextResourceContents

    resource = block.resource
    return Text(resource.text) if isinstance(resource, TextResourceContents) else _blob(resource)


def _blob(resource: BlobResourceContents) -> Text | Image:
    kind = resource.mime_type or "bytes"
    if kind.startswith("image/"):
        return _image(resource.blob, kind)
    return Text(_left_out(f"{kind} from {resource.uri}", _decoded(resource.blob)))


def _image(data: str, media_type: str) -> Text | Image:
    decoded = _decoded(data)
    return Text(_left_out(media_type, None)) if decoded is None else Image(decoded, media_type)


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return None


def _left_out(kind: str, data: bytes | None) -> str:
    size = "not valid base64" if data is None else f"{len(data):,} bytes"
    return f"[left out: {kind}, {size}]"


def _is_said(structured: Any, parts: Iterable[Text | Image]) -> bool:
    """Whether a text holds the structured content already, as servers are asked to have it.

    The SDK's own servers wrap what is no object in `{"result": …}`, and say in text what is inside.
    """
    inner = structured.get("result") if isinstance(structured, dict) and set(structured) == {"result"} else structured
    texts = [part.text for part in parts if isinstance(part, Text)]
    if inner == "\n".join(texts) or (isinstance(inner, list) and inner and inner == [_value(text) for text in texts]):
        return True
    return any(_value(text) in (structured, inner) for text in texts)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
