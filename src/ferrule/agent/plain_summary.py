"""The plain summary of messages: an entry for what was said and for each call, each cut short.

An entry is a line; further lines of its text are indented, so that a later summary can take entries over from this one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ferrule.conversation import MalformedCall, Message, ToolResult

_SHORT, _LONG = 300, 2_000
_LONGEST = 6_000
_KINDS = ("user", "assistant", "refused", "called")
_ENTRY = re.compile(rf"^- (?:{'|'.join(_KINDS)}): .*(?:\n  .*)*", re.MULTILINE)
_LEFT_OUT = re.compile(r"^- \(([\d,]+) more\)\n?", re.MULTILINE)


def summarize_plainly(earlier: str, dropped: Sequence[Message]) -> Iterator[str]:
    """Yield an entry for each message and call, after those of an earlier summary; its other text stays before them.

    If they are too many, those of user and refusals stay, then the last.
    """
    left_out = sum(int(count.replace(",", "")) for count in _LEFT_OUT.findall(earlier))
    earlier = _LEFT_OUT.sub("", earlier)
    other = _ENTRY.sub("", earlier).strip()
    if other:  # what a model wrote, or what describes the messages
        yield cut_middle(re.sub(r"\n{2,}", "\n", other), _LONGEST)
    entries = [*_ENTRY.findall(earlier), *describe_messages(dropped, _SHORT)]
    kept = _choose(entries)
    left_out += len(entries) - len(kept)
    if left_out:
        yield f"- ({left_out} more)"
    yield from (entries[at] for at in sorted(kept))


def list_refusals(earlier: str, dropped: Sequence[Message], written: str) -> Iterator[str]:
    """Yield the entries of refused calls, of an earlier summary too, that a summary doesn't have yet."""
    found = chain(_ENTRY.findall(earlier), describe_messages(dropped))
    refused = [entry for entry in dict.fromkeys(found) if entry.startswith("- refused: ") and entry not in written]
    yield from (refused[at] for at in sorted(_choose(refused)))


def _choose(entries: Sequence[str]) -> set[int]:
    """Choose the entries that there is room for, by index."""
    room, kept = _LONGEST, set[int]()
    for at in sorted(range(len(entries)), key=lambda at: (not _is_decision(entries[at]), -at)):
        if len(entries[at]) <= room:
            room -= len(entries[at])
            kept.add(at)
    return kept


def _is_decision(entry: str) -> bool:
    return entry.startswith(("- user: ", "- refused: "))


def describe_messages(messages: Iterable[Message], longest: int = _LONG) -> Iterator[str]:
    """Yield an entry for each message of user or assistant and for each call; texts have about `longest` characters."""
    messages = tuple(messages)
    results = {one.result.call_id: one.result for one in messages if one.role == "tool"}
    for message in messages:
        if message.role in ("user", "assistant") and message.text.strip():
            yield _indent(f"- {message.role}: {cut_middle(message.text.strip(), longest)}")
        for call in message.calls:
            result = results.get(call.id)
            given = call.raw if isinstance(call, MalformedCall) else f"{call.name} {call.arguments}"
            answer = "no result" if result is None else f"{result.status}: {cut_middle(result.text, longest)}"
            yield _indent(f"- {_name_outcome(result)}: {cut_middle(given, longest)} → {answer}")


def _indent(entry: str) -> str:
    return entry.replace("\n", "\n  ")


def _name_outcome(result: ToolResult | None) -> str:
    return "refused" if result is not None and result.status == "denied" else "called"


def cut_middle(text: str, longest: int) -> str:
    """Cut a text in the middle to about as many characters."""
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]} … {text[-longest // 2 :]}"
