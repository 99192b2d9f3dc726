"""Converts results: MCP's into parts that a model reads, and ours into MCP's.

What can't be shown (audio, bytes that aren't an image) becomes a note that says what was left out.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ferrule.conversation import Image, Text, ToolResult
from ferrule.errors import ToolFailed
from ferrule.tools.argument_errors import format_path
from ferrule.tools.schema_validator import SchemaValidator
from ferrule.toolspec import JSONSchema

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, CallToolResult, ContentBlock, EmbeddedResource

_MOST_SEARCHED = 50_000_000
"""Values of structured content times characters of text, which are compared in about a second."""
_MOST_SHOWN = 300
_FEW, _LONG = 20, 100_000
_CONTENTS = {"text", "data", "resource", "blob", "uri"}
"""The fields of a block that hold its content."""
_NOTE = "[the {} of the type {} in this result]"
_IS_NOTE = re.compile(r"\[the \w+ of the type \S+ in this result\]")


def read_parts(result: CallToolResult) -> list[Text | Image]:
    """Convert an MCP result to parts, in order; structured content comes last, unless the parts contain the same."""
    parts = [part for block in result.content for part in _read_block(block)]
    if result.structured_content is not None:
        binary = {data: (kind, name) for block in result.content for data, kind, name in _list_binary(block)}
        # What a model sees as an image, or can't see, is of no use to it as base64.
        structured, images = _extract_binary(result.structured_content, binary)
        if images or not _is_in_text(structured, parts, {block.type for block in result.content}):
            parts += [Text(json.dumps(structured, ensure_ascii=False)), *images]
    return parts


def is_short(result: CallToolResult) -> bool:
    """Whether it takes no time to convert a result; anything else is for a thread."""
    if result.structured_content is not None or len(result.content) > _FEW:
        return False
    return all(
        len(getattr(block, "text", "")) < _LONG and block.type in ("text", "resource_link") for block in result.content
    )


def read_failure(result: CallToolResult) -> str:
    """Describe a failed call to the model: the server's text, and notes for its other parts."""
    shown = [
        part.text if isinstance(part, Text) else _describe_omitted(part.media_type, part.data)
        for part in read_parts(result)
    ]
    # The executor adds "error: ", and the server may have added it already.
    return "\n".join(shown).removeprefix("error: ") or "the server reported a failure without a reason"


def check_structured(structured: Any, validator: SchemaValidator) -> None:
    """Check structured content against the tool's output schema. Raises `ToolFailed`, for the model, if it is wrong."""
    try:
        errors = validator.errors(structured)
    except Exception as error:  # a schema of somebody else's may fail in any way
        raise ToolFailed(f"the call was run, but its output schema can't be applied: {error}") from error
    if errors:
        reason = f"{format_path(list(errors[0].absolute_path))}: {errors[0].message}"
        raise ToolFailed(
            f"the call was run, but what it returned doesn't follow the tool's output schema: {reason[:_MOST_SHOWN]}"
        )


def write_structured(result: ToolResult, schema: JSONSchema) -> dict[str, Any]:
    """Convert a result to structured content that follows a schema. Raises `ToolFailed` if it doesn't."""
    value = result.data
    if value is None and result.text != "null":
        value = result.text  # what a tool of several types returned as text
    validator = SchemaValidator(schema)
    # An object is wrapped too if the schema is of one type among others: see `make_output_schema`.
    wrapped = {"result": value}
    is_wrapped = not isinstance(value, dict) or (validator.errors(value) and not validator.errors(wrapped))
    structured = wrapped if is_wrapped else value
    check_structured(structured, validator)
    return structured


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


def _list_binary(block: ContentBlock) -> Iterator[tuple[str, str, str]]:
    """The base64 of a block, if it has any, with the type of the block and the media type."""
    if block.type in ("image", "audio") and block.data:
        yield block.data, block.type, block.mime_type
    elif block.type == "resource":
        blob = getattr(block.resource, "blob", None)
        if blob:
            yield blob, block.type, block.resource.mime_type or "bytes"


def _extract_binary(value: Any, binary: Mapping[str, tuple[str, str]]) -> tuple[Any, list[Image]]:
    """Replace the base64 of blocks in structured content by notes; returns the images among them that no block has."""
    if isinstance(value, str):
        known = binary.get(value)
        return (value, []) if known is None else (_NOTE.format(*known), [])
    if isinstance(value, list):
        found = [_extract_binary(one, binary) for one in value]
        return [one for one, _ in found], [image for _, images in found for image in images]
    if not isinstance(value, dict):
        return value, []
    data, media_type = value.get("data"), value.get("mimeType")
    if value.get("type") == "image" and isinstance(data, str) and isinstance(media_type, str) and data not in binary:
        image = _read_image(data, media_type)
        if isinstance(image, Image):
            return value | {"data": _NOTE.format("image", media_type)}, [image]
    found = [_extract_binary(one, binary) for one in value.values()]
    return dict(zip(value, [one for one, _ in found], strict=True)), [image for _, images in found for image in images]


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


def _is_in_text(structured: Any, parts: Iterable[Text | Image], types: Collection[str] = ()) -> bool:
    """Whether the parts already say what the structured content does, as the specification recommends.

    `types` are those of the result's blocks, which structured content may repeat, with a note for their base64.

    That is the same JSON, or any text that has each of its values: "3 files: a, b, c" for `{"files": ["a", "b", "c"]}`.
    The SDK's own servers wrap values other than objects in `{"result": …}`, and write the inner value as text.
    """
    inner = structured.get("result") if isinstance(structured, dict) and set(structured) == {"result"} else structured
    texts = [part.text for part in parts if isinstance(part, Text)]
    if inner == "\n".join(texts) or (
        isinstance(inner, list) and inner and inner == [_parse_or_keep(text) for text in texts]
    ):
        return True
    return any(_parse_or_keep(text) in (structured, inner) for text in texts) or _has_values(
        "\n".join(texts), structured, types
    )


def _has_values(text: str, structured: Any, types: Collection[str]) -> bool:
    """Whether each value of the structured content, at any depth, stands in a text; not looked for in much of both."""
    leaves: list[str] = []
    is_repeated = False
    waiting = [structured]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            is_block = value.get("type") in types and not _CONTENTS.isdisjoint(value)
            waiting += [one for name, one in value.items() if not (is_block and name in ("type", "mimeType"))]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and _IS_NOTE.fullmatch(value):
            is_repeated = True
        elif isinstance(value, str):
            leaves.append(value)
        else:
            leaves.append(json.dumps(value))
    if not leaves:
        return is_repeated
    if len(leaves) * len(text) > _MOST_SEARCHED:
        return False
    return all(_stands_in(leaf, text) for leaf in leaves)


def _stands_in(leaf: str, text: str) -> bool:
    # A whole word: otherwise the 1 of {"count": 1} would stand in "12 files".
    return bool(leaf) and re.search(rf"(?<!\w){re.escape(leaf)}(?!\w)", text) is not None


def _parse_or_keep(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
