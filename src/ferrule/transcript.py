"""A conversation for people to read: plain text for terminals, HTML and Markdown for notebooks.

`print(conversation)` and notebooks use these functions. Every text is escaped, so that what a model or a tool wrote
can't control a terminal, and can't add tags, scripts, links or images to a page.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ferrule._util.terminal_text import escape_line, escape_text
from ferrule.media import Audio, File, Image, Reasoning, Text
from ferrule.toolspec import COMMENT_NOTE, EDITED_NOTE, MalformedCall, ToolCall, ToolResult

if TYPE_CHECKING:
    from ferrule.conversation import Conversation, Message

EDITED = "  (edited by you)"
"""What stands behind the arguments of a call that aren't those of the model."""
_LONGEST = 200
_LONGEST_DETAIL = 20_000
_MOST_COMPARED = 2_000
"""Lines of an edit that are compared; those of a longer one all count as changed."""
_LARGEST_IMAGE = 5_000_000
_SHOWN_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif"})


def render_text(conversation: Conversation) -> str:
    """Write a conversation as plain text: a line for each message, and one for each call with its result."""
    return "\n".join(label + text for label, text in iterate_lines(conversation))


def iterate_lines(conversation: Conversation) -> Iterator[tuple[str, str]]:
    """Yield each message and each call as a label (`user: `, `▸ `) and its escaped text."""
    for message, results in _pair_results(conversation):
        said = escape_text("".join(_iterate_texts(message))).strip("\n")
        if said:
            yield f"{message.role}: ", said
        if message.role == "tool":
            for alone in filter(None, results):
                yield "▸ ", f"{escape_line(alone.name)}  →  {summarize_result(alone)}"
            continue
        for call, result in zip(message.calls, results, strict=True):
            yield "▸ ", _summarize_call(call, result)


def name_call(call: ToolCall | MalformedCall) -> str:
    """Name a call by its tool, escaped for one line."""
    return escape_line(call.name) if isinstance(call, ToolCall) else "unreadable call"


def summarize_arguments(call: ToolCall | MalformedCall) -> str:
    """Write the arguments of a call on one line: the plain text of a single string, else `name=value` pairs."""
    if isinstance(call, MalformedCall):
        return _shorten(call.raw)
    try:
        arguments = call.decode()
    except (ValueError, RecursionError):
        return _shorten(call.arguments)
    if not isinstance(arguments, dict):
        return _shorten(call.arguments)
    values = list(arguments.values())
    if len(values) == 1 and isinstance(values[0], str):
        return _shorten(values[0])
    written = (
        f"{name}={count_edits(value) or json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()
    )
    return _shorten(", ".join(written))


def count_edits(value: Any) -> str:
    """Count the lines that replacements add and remove; empty if these are none."""
    if not (
        isinstance(value, list)
        and value
        and all(isinstance(one, dict) and isinstance(one.get("old"), str) for one in value)
    ):
        return ""
    added = removed = 0
    for edit in value:
        more, fewer = _count_changed_lines(edit["old"].splitlines(), str(edit.get("new", "")).splitlines())
        added, removed = added + more, removed + fewer
    return f"+{added:,} −{removed:,}"


def _count_changed_lines(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    if len(old) + len(new) > _MOST_COMPARED:
        return len(new), len(old)
    from difflib import SequenceMatcher

    same = sum(block.size for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
    return len(new) - same, len(old) - same


def summarize_result(result: ToolResult | str) -> str:
    """Write a result, or the progress text of a running call, on one line."""
    if isinstance(result, str):
        return _shorten(result)
    # The lines of an error are sentences; in other results, line ends may be what matters.
    texts = _join_lines if result.is_error else str
    return "  ".join(
        _shorten(texts(_write_for_person(part.text))) if isinstance(part, Text) else describe_image(part)
        for part in result.content
    )


def remove_edit_note(result: ToolResult) -> ToolResult:
    """Remove what tells the model that a person has edited the call, where the call itself is shown as it ran."""
    content = tuple(one for one in result.content if not (isinstance(one, Text) and one.text.startswith(EDITED_NOTE)))
    return result if len(content) == len(result.content) else replace(result, content=content)


def _write_for_person(text: str) -> str:
    """Write a note for the model about what the person did for that person."""
    for note, said in ((EDITED_NOTE, "edited by you: "), (COMMENT_NOTE, "you said: ")):
        if text.startswith(note):
            return f"({said}{text[len(note) :].removesuffix(']')})"
    return text


def describe_image(image: Image | Audio | File) -> str:
    """Write the media type, size and hash of an image, audio or a file, and a file's name."""
    name = f"{escape_line(image.name)}, " if isinstance(image, File) else ""
    return f"[{name}{escape_line(image.media_type)}, {len(image.data):,} bytes, {image.hash}]"


def render_html(conversation: Conversation) -> str:
    """Write a conversation as HTML for a notebook: images are shown, arguments and results unfold."""
    pairs = _pair_results(conversation)
    messages = "".join(_render_message(one, results) for one, results in pairs if one.role != "tool")
    # The classes keep MathJax, which notebooks run on their outputs, from reading formulas into a text.
    return f'<div class="tex2jax_ignore mathjax_ignore">{messages}</div>'


def render_markdown(conversation: Conversation) -> str:
    """Write a conversation as Markdown, in which every text stands as it was written: none of it is markup."""
    blocks: list[str] = []
    for message, results in _pair_results(conversation):
        if message.role == "tool":
            continue
        texts = [_escape_markdown(part.text) for part in message.parts if isinstance(part, Text) and part.text.strip()]
        texts += [_escape_markdown(describe_image(part)) for part in message.parts if isinstance(part, Audio | File)]
        images = [_render_markdown_image(part) for part in message.parts if isinstance(part, Image)]
        if texts or images:
            blocks.append(" ".join([f"**{message.role}:**", *texts, *images]))
        for call, result in zip(message.calls, results, strict=True):
            shown = [] if result is None else [part for part in result.content if isinstance(part, Image)]
            line = _escape_markdown(f"▸ {_summarize_call(call, result)}")
            blocks.append(" ".join([line, *map(_render_markdown_image, shown)]))
    return "\n\n".join(blocks)


def escape_html(text: str) -> str:
    """Escape a text for HTML, including the invisible characters that could reorder what is shown."""
    # Only notebooks need it.
    from html import escape

    return escape(escape_text(text))


def _pair_results(conversation: Conversation) -> list[tuple[Message, list[ToolResult | None]]]:
    """Each message with the results of its calls, in their order; a tool message with its result if that has no call.

    Ids may repeat, also in one message: a result belongs to the first call of its id in the last message with one that
    isn't answered yet.
    """
    pairs: list[tuple[Message, list[ToolResult | None]]] = []
    waiting: dict[str, deque[tuple[list[ToolResult | None], int]]] = {}
    for message in conversation.messages:
        results: list[ToolResult | None] = [None] * len(message.calls)
        places: dict[str, deque[tuple[list[ToolResult | None], int]]] = {}
        for at, call in enumerate(message.calls):
            places.setdefault(call.id, deque()).append((results, at))
        waiting.update(places)
        if message.role == "tool":
            open_places = waiting.get(message.result.call_id)
            if open_places:
                answers, at = open_places.popleft()
                answers[at] = message.result
            else:
                results = [message.result]
        pairs.append((message, results))
    return pairs


def _iterate_texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, Image | Audio | File):
            yield describe_image(part)


def _summarize_call(call: ToolCall | MalformedCall, result: ToolResult | None) -> str:
    answer = "…  not answered yet" if result is None else f"→  {summarize_result(result)}"
    return "  ".join(part for part in (name_call(call), summarize_arguments(call), answer) if part)


def _join_lines(text: str) -> str:
    return " ".join(line for one in text.splitlines() if (line := one.strip()))


def _shorten(text: str) -> str:
    text = text.strip()
    half = _LONGEST // 2
    notice = f" … {len(text) - 2 * half:,} characters … "
    if len(text) <= 2 * half + len(notice):
        return _escape_line_ends(text)
    return f"{_escape_line_ends(text[:half])}{notice}{_escape_line_ends(text[-half:])}"


def _escape_line_ends(text: str) -> str:
    return escape_text(text).replace("\n", "\\n").replace("\t", "\\t")


_PLAIN = "white-space:pre-wrap;overflow-wrap:anywhere"


def _render_message(message: Message, results: list[ToolResult | None]) -> str:
    said = "".join(_render_parts(message.parts))
    calls = "".join(_render_call(call, result) for call, result in zip(message.calls, results, strict=True))
    return (f"<div><b>{message.role}:</b> {said}</div>" if said else "") + calls


def _render_parts(parts: Iterable[object]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text) and part.text.strip():
            yield f'<span style="{_PLAIN}">{escape_html(part.text.strip())}</span>'
        elif isinstance(part, Image):
            yield _render_html_image(part)
        elif isinstance(part, Audio | File):
            yield escape_html(describe_image(part))
        elif isinstance(part, Reasoning):
            yield f"<details><summary>reasoning</summary>{_render_detail(part.text)}</details>"


def _render_call(call: ToolCall | MalformedCall, result: ToolResult | None) -> str:
    """A call and its result on one line, which unfolds to both in full; images of the result stand below it."""
    line = escape_html(f"▸ {_summarize_call(call, result)}")
    given = call.arguments if isinstance(call, ToolCall) else call.raw
    details = _render_detail(given) + ("" if result is None else _render_detail(result.text))
    images = () if result is None else (part for part in result.content if isinstance(part, Image))
    shown = "".join(map(_render_html_image, images))
    return f"<details><summary><code>{line}</code></summary>{details}</details>{shown}"


def _render_detail(text: str) -> str:
    left_out = len(text) - _LONGEST_DETAIL
    cut = text if left_out <= 0 else f"{text[:_LONGEST_DETAIL]}\n… {left_out:,} characters left out"
    return f'<pre style="{_PLAIN}">{escape_html(cut)}</pre>'


def _encode_image(image: Image) -> str | None:
    """The image as a data URI; None if browsers don't show its type, or it is too large for a page."""
    if image.media_type not in _SHOWN_IMAGES or len(image.data) > _LARGEST_IMAGE:
        return None
    from base64 import b64encode

    return f"data:{image.media_type};base64,{b64encode(image.data).decode()}"


def _render_html_image(image: Image) -> str:
    address = _encode_image(image)
    described = escape_html(describe_image(image))
    return described if address is None else f'<img src="{address}" alt="{described}" style="max-width:20em">'


def _render_markdown_image(image: Image) -> str:
    address = _encode_image(image)
    described = _escape_markdown(describe_image(image))
    return described if address is None else f"![{described}]({address})"


_MARKUP = re.compile(r"""[!"#$%&'*+\-./:<=>@\[\\\]()^_`{|}~]""")
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)


def _escape_markdown(text: str) -> str:
    """Write each character that may be markup as a numeric reference: in CommonMark, a reference never is markup.

    A backslash before it would not do, since notebooks look for formulas (`$`, `\\(`) before they read the Markdown.
    """
    plain = _MARKUP.sub(lambda found: f"&#{ord(found[0])};", escape_text(text).strip())
    plain = _INDENT.sub(lambda found: "&nbsp;" * len(found[0].expandtabs(4)), plain)
    return plain.replace("\n", "<br>\n")
