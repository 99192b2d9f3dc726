"""Structured content is shown unless a text says the same, and errors keep what came with them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from mcp_types import CallToolResult, ImageContent, TextContent

from ferrule.conversation import Image, Text
from ferrule.mcp.content import read_failure, read_parts
from ferrule.mcp.incoming import prune_json
from tables import each_case


@each_case(
    ("texts", "structured"),
    [
        (['{"a": 1}'], {"a": 1}),
        (['{ "a" :1 }'], {"a": 1}),
        (["hello"], {"result": "hello"}),
        (["3"], {"result": 3}),
        (["1", "2"], {"result": [1, 2]}),
        (["one\n", "two"], {"result": "one\n\ntwo"}),
        (["[DIR] a\n[FILE] b"], {"content": "[DIR] a\n[FILE] b"}),
        (["2 files: a.txt and b.txt"], {"files": ["a.txt", "b.txt"], "count": 2}),
    ],
)
def test_what_a_text_says_is_not_said_again(texts: list[str], structured: Any) -> None:
    result = CallToolResult(content=[TextContent(text=text) for text in texts], structured_content=structured)
    assert read_parts(result) == [Text(text) for text in texts]


@pytest.mark.parametrize(
    ("texts", "structured"),
    [
        (["two rows"], {"rows": [1, 2]}),
        ([], {"a": "é"}),
        (["nothing"], {"result": []}),
        (["12 files"], {"count": 1}),
    ],
)
def test_what_no_text_says_is_added(texts: list[str], structured: Any) -> None:
    result = CallToolResult(content=[TextContent(text=text) for text in texts], structured_content=structured)
    added = json.dumps(structured, ensure_ascii=False)
    assert read_parts(result) == [*(Text(text) for text in texts), Text(added)]


PICTURE = base64.b64encode(b"\x89PNG the bytes").decode()
IMAGE = {"type": "image", "data": PICTURE, "mimeType": "image/png"}
OTHER = {**IMAGE, "data": "AAAA"}
BLOB = {"uri": "file:///z", "blob": PICTURE, "mimeType": "application/zip"}
AT_IMAGE = "[the image of the type image/png in this result]"


@each_case(
    ("content", "structured", "added"),
    [
        ([IMAGE], {"content": [IMAGE]}, None),
        ([IMAGE], {"result": [IMAGE]}, None),
        ([{"type": "text", "text": "look"}, IMAGE], {"content": [{"type": "text", "text": "look"}, IMAGE]}, None),
        ([{"type": "audio", "data": PICTURE, "mimeType": "audio/wav"}], {"data": PICTURE}, None),
        ([{"type": "resource", "resource": BLOB}], {"content": [{"type": "resource", "resource": BLOB}]}, None),
        ([IMAGE], {"png": PICTURE, "dots": 7}, {"png": AT_IMAGE, "dots": 7}),
        ([IMAGE], {"type": "image"}, {"type": "image"}),
        ([OTHER], {"pictures": [IMAGE]}, {"pictures": [{**IMAGE, "data": AT_IMAGE}]}),
        ([], {"pictures": [IMAGE]}, {"pictures": [{**IMAGE, "data": AT_IMAGE}]}),
    ],
)
def test_the_bytes_of_a_block_are_not_text_in_structured_content(
    content: list[Any], structured: Any, added: Any
) -> None:
    result = CallToolResult.model_validate({"content": content, "structuredContent": structured})
    shown = read_parts(result)
    texts = [part.text for part in shown if isinstance(part, Text)]
    assert PICTURE not in "".join(texts)
    known = [*content, *structured.get("pictures", ())]
    assert sum(isinstance(part, Image) for part in shown) == sum(one in known for one in (IMAGE, OTHER))
    if added is None:
        assert len(shown) == len(content)
    else:
        assert json.loads(texts[-1]) == added


def test_an_error_says_what_it_can() -> None:
    picture = ImageContent(data="AAAA", mime_type="image/png")
    assert read_failure(CallToolResult(content=[TextContent(text="error: no"), picture], is_error=True)) == (
        "no\n[left out: image/png, 3 bytes]"
    )
    assert "without a reason" in read_failure(CallToolResult(content=[], is_error=True))


@pytest.mark.parametrize("levels", [0, 1, 179, 180, 181, 300, 50_000])
def test_only_what_is_nested_too_deeply_is_cut_off(levels: int) -> None:
    text = '{"a": "]}\\"[{", "b": ' + "[" * levels + '"x"' + "]" * levels + ', "c": [1]}'
    pruned = json.loads(prune_json(text))
    assert (pruned["a"], pruned["c"]) == (']}"[{', [1])
    inner = pruned["b"]
    while isinstance(inner, list):
        (inner,) = inner
    assert inner == ("x" if levels < 180 else None)
    assert (prune_json(text) == text) is (levels < 180)


def test_a_text_without_its_end_is_read_once() -> None:
    text = '{"a": "' + '\\"' * 500_000
    assert prune_json(text) == text
