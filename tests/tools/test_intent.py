"""What a call would do: previews as data, and intents that are methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ferrule.errors import ToolDefinitionError
from ferrule.tools.decorator import tool
from ferrule.tools.intent import Diff, Effect, ImageRef, Intent, Preview, preview_from_json, preview_to_json
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.toolset import Toolset


class Notes(Toolset):
    """Notes in memory."""

    def __init__(self) -> None:
        self.texts = {"a": "one\n"}

    def preview_write(self, arguments: Mapping[str, Any]) -> Intent:
        path = str(arguments["path"])
        return Intent((Effect("write", path),), Diff(path, self.texts.get(path, ""), str(arguments["text"])))

    async def preview_drop(self, arguments: Mapping[str, Any]) -> Intent:
        return Intent((Effect("write", str(arguments["path"])),), "".join(self.texts))

    @tool(intent=preview_write)
    def write(self, path: str, text: str) -> str:
        """Write a note."""
        self.texts[path] = text
        return path

    @tool(intent=preview_drop)
    def drop(self, path: str) -> str:
        """Drop a note."""
        return self.texts.pop(path)

    @tool(intent=lambda arguments: Intent((Effect("read", arguments["path"]),)))
    def read(self, path: str) -> str:
        """Read a note."""
        return self.texts[path]


def test_a_toolsets_method_is_the_intent_of_its_object() -> None:
    notes = Notes()
    notes.write("b", "two\n")
    write, _, read = notes.tools
    assert write.intent is not None
    assert read.intent is not None
    intent = write.intent({"path": "b", "text": "three\n"})
    assert intent.effects == (Effect("write", "b"),)
    assert intent.preview == Diff("b", "two\n", "three\n")
    assert read.intent({"path": "b"}).effects == (Effect("read", "b"),)


async def test_an_object_that_is_made_for_a_run_is_given_too() -> None:
    async with ToolRegistry([Notes]).prefixed("n_").open() as bound:
        drop = bound.get("n_drop")
        assert drop is not None
        assert drop.intent is not None
        assert await drop.intent({"path": "a"}) == Intent((Effect("write", "a"),), "a")


def test_what_is_no_function_is_refused_at_once() -> None:
    with pytest.raises(ToolDefinitionError, match="the tool 'f': intent must be a function of the arguments, not 'w'"):
        tool(name="f", intent="w")(lambda: "")


@pytest.mark.parametrize("preview", ["rm -r /x", "", Diff("a.txt", "", "x\n"), ImageRef("0123abcd", "image/webp")])
def test_previews_as_json(preview: Preview) -> None:
    assert preview_from_json(preview_to_json(preview)) == preview


@pytest.mark.parametrize("data", [None, 3, ["x"], {}, {"diff": "a"}, {"image": "a"}])
def test_what_is_no_preview(data: Any) -> None:
    with pytest.raises((LookupError, TypeError)):
        preview_from_json(data)


def test_a_diff_in_text() -> None:
    assert str(Diff("a.txt", "one\ntwo\n", "one\n2\n")) == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2"
    assert str(Diff("/tmp/a.txt", "x", "y")).splitlines()[:2] == ["--- a/tmp/a.txt", "+++ b/tmp/a.txt"]
    assert str(Diff("a.txt", "", "x")) == "--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file"
    assert str(Diff("a.txt", "x\n", "x\n")) == ""


def test_a_diff_of_encoded_texts_is_that_of_the_texts() -> None:
    diff, encoded = Diff("a.txt", "é\n", "e\n"), Diff("a.txt", "é\n".encode(), b"e\n")
    assert encoded == diff
    assert hash(encoded) == hash(diff)
    assert (encoded.before, encoded.after) == ("é\n", "e\n")
    assert str(encoded) == str(diff)
    assert repr(encoded) == "Diff(path='a.txt', before='é\\n', after='e\\n')"


def test_a_picture_in_text() -> None:
    assert str(ImageRef("0123abcd")) == "[image 0123abcd, image/png]"


def test_a_tool_keeps_its_first_name() -> None:
    registry = ToolRegistry([Notes()])
    assert [one.original_name for one in registry] == [None, None, None]
    again = registry.prefixed("n_").renamed({"n_read": "see"}).with_origin("plugin").only("see", "n_drop")
    assert [(one.name, one.original_name) for one in again] == [("n_drop", "drop"), ("see", "read")]
