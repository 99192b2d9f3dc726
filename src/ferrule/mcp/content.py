"""Converts results: MCP's into parts that a model reads, and ours into MCP's.

What can't be shown (audio, bytes that aren't an image) becomes a note that says what was left out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ferrule.conversation import Image, Text, ToolResult

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, CallToolResult, ContentBlock, EmbeddedResource


def read_parts(result: CallToolResult) -> list[Text | Image]:
    """Convert an MCP result to parts, in order; structured content comes last, unless a text contains the same."""
    parts = [part for block in result.content for part in _read_block(block)]
    if result.structured_content is not None and not _is_in_text(result.structured_content, parts):
        parts.append(Text(json.dumps(result.structured_content, ensure_ascii=False)))
    return parts


def read_failure(result: CallToolResult) -> str:
    """Describe a failed call to the model: the server's text, and notes for its other parts."""
    shown = [
        part.text if isinstance(part, Text) else _describe_omitted(part.media_type, part.data)
        for part in read_parts(result)
    ]
    # The executor adds "error: ", and the server may have added it already.
    return "\n".join(shown).removeprefix("error: ") or "the server reported a failure without a reason"


def write_content(result: ToolResult) -> list[ContentBlock]:
    """Convert one of our results to MCP content blocks."""
    from mcp_types import ImageContent, TextContent

    return [
        TextContent(text=part.text)
        if isinstance(part, Text)
        else ImageContent(data=base64.b64encode(part.data).decode(), mime_type=part.media_type)
        for part in result.content
    ]


def _read_block(block: ContentBlock) -> Iterator[Text | Image]:
    if block.type == "text":
        yield Text(block.text)
    elif block.type == "image":
        yield _read_image(block.data, block.mime_type)
    elif block.type == "audio":
        yield Text(_describe_omitted(block.mime_type, _decode_base64(block.data)))
    elif block.type == "resource":
        yield _read_resource(block)
    else:
        about = f" ({block.description})" if block.description else ""
        yield Text(f"[a link to the resource {block.uri}, {block.name}{about}; its content was not sent]")


def _read_resource(block: EmbeddedResource) -> Text | Image:
    from mcp_types import TextResourceContents

    resource = block.resource
    return Text(resource.text) if isinstance(resource, TextResourceContents) else _read_blob(resource)


def _read_blob(resource: BlobResourceContents) -> Text | Image:
    kind = resource.mime_type or "bytes"
    if kind.startswith("image/"):
        return _read_image(resource.blob, kind)
    return Text(_describe_omitted(f"{kind} from {resource.uri}", _decode_base64(resource.blob)))


def _read_image(data: str, media_type: str) -> Text | Image:
    decoded = _decode_base64(data)
    return Text(_describe_omitted(media_type, None)) if decoded is None else Image(decoded, media_type)


def _decode_base64(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return None


def _describe_omitted(kind: str, data: bytes | None) -> str:
    size = "not valid base64" if data is None else f"{len(data):,} bytes"
    return f"[left out: {kind}, {size}]"


def _is_in_text(structured: Any, parts: Iterable[Text | Image]) -> bool:
    """Whether a text already contains the structured content, as the specification recommends.

    The SDK's own servers wrap values other than objects in `{"result": …}`, and write the inner value as text.
    """
    inner = structured.get("result") if isinstance(structured, dict) and set(structured) == {"result"} else structured
    texts = [part.text for part in parts if isinstance(part, Text)]
    if inner == "\n".join(texts) or (
        isinstance(inner, list) and inner and inner == [_parse_or_keep(text) for text in texts]
    ):
        return True
    return any(_parse_or_keep(text) in (structured, inner) for text in texts)


def _parse_or_keep(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
