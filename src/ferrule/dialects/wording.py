"""How results and offers are worded: what most families share, and the offer texts that several of them use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ferrule.conversation import ToolResult
from ferrule.toolspec import ToolSpec, render_openai_tool

TOOL_RESPONSE = ("<tool_response>", "</tool_response>")
MAY_CALL = "You may call these tools:\n"
TOOL_LINES = "You can call these tools, one JSON object a line:\n"
TOOL_LIST = "# Tools\n\nThe functions you can call are listed here, one JSON object a line:\n<tools>\n"
TAGS_FOLLOW = "\n</tools>\n\nTo call some, write their names and arguments between tags, like this:\n"
PAIRS_FOLLOW = "\n</tools>\n\nTo call one, write its name, then each key and value between tags, like this:\n"
INVOKE_EXAMPLE = '<invoke name="name">\n<parameter name="key">value</parameter>\n</invoke>'


class ResultWriter(Protocol):
    """How the results of a group of calls are worded."""

    def write(self, results: Sequence[ToolResult], texts: Sequence[str]) -> str:
        """The results; `texts` are theirs, with markers already neutralised."""
        ...


@dataclass(frozen=True, slots=True)
class ResultRead:
    """A result as read from text: the tool's name, the result's text, and whether it was an error."""

    name: str
    text: str
    is_error: bool


@runtime_checkable
class ResultReader(Protocol):
    """A wording of results that can be read back."""

    def read(self, text: str) -> list[ResultRead] | None:
        """The results of one group; None for any other text."""
        ...


class OfferWriter(Protocol):
    """How tools are offered to a model."""

    def write(self, tools: Sequence[ToolSpec]) -> str:
        """The block for the system message."""
        ...


@dataclass(frozen=True, slots=True)
class WrappedResults:
    """Each result between two texts, in which `{name}` and `{id}` are replaced by those of its call. `quoted`: as a
    JSON string."""

    open: str
    close: str
    before: str = ""
    between: str = "\n"
    after: str = ""
    quoted: bool = False

    def write(self, results: Sequence[ToolResult], texts: Sequence[str]) -> str:
        """The results, one after the other."""
        written = [
            self._fill(self.open, result) + self.quote(text) + self._fill(self.close, result)
            for result, text in zip(results, texts, strict=True)
        ]
        return f"{self.before}{self.between.join(written)}{self.after}"

    def quote(self, text: str) -> str:
        """The text of a result as it is written between the two."""
        return json.dumps(text, ensure_ascii=False) if self.quoted else text

    @staticmethod
    def _fill(text: str, result: ToolResult) -> str:
        return text.replace("{name}", result.name).replace("{id}", result.call_id)


@dataclass(frozen=True, slots=True)
class JsonOffer:
    """Tools in the shape of OpenAI's API, one line of JSON each, between two texts."""

    before: str
    after: str = ""

    def write(self, tools: Sequence[ToolSpec]) -> str:
        """The block."""
        return self.before + "\n".join(encode_offer(spec) for spec in tools) + self.after


def encode_offer(spec: ToolSpec) -> str:
    """A tool in the shape of OpenAI's API, on one line."""
    return json.dumps(render_openai_tool(spec), ensure_ascii=False)


def offer_array(before: str, after: str = "", element: str = '{"name": <name>, "arguments": <arguments>}') -> JsonOffer:
    """An offer of tools that shows between which texts the array of calls goes."""
    return JsonOffer(MAY_CALL, f"\n\nTo call some, write {before}[{element}, …]{after}")


def offer_tagged_object(tag: str) -> JsonOffer:
    """An offer of tools as a list, which shows how to call one between `<tag>` and `</tag>`."""
    return JsonOffer(
        TOOL_LIST,
        "\n</tools>\n\nTo call one, write a JSON object with its name and arguments between these markers:\n"
        f'<{tag}>\n{{"name": <name>, "arguments": <arguments>}}\n</{tag}>',
    )
