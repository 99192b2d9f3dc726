"""The recorded cases of other engines, and how a case is compared: see the README of `../shared/vectors`."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ferrule.dialects.catalogue import load_families
from ferrule.dialects.notation import TextNotation
from ferrule.dialects.reader.parameters import ToolParameters
from ferrule.events import CallFinished, CallMalformed, CallStarted, Framing, ReaderEvent, ReasoningDelta, TextDelta
from ferrule.toolspec import ToolSpec

FOLDER = Path(__file__).parents[3] / "shared" / "vectors"
DIFFERENCES = Path(__file__).parent / "differences"
IS_MISSING = pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared/vectors is missing")


@cache
def cases(kind: str, name: str) -> tuple[dict[str, Any], ...]:
    """The cases of `parse` or `streamed` for one format; none where the folder is missing."""
    path = FOLDER / kind / f"{name}.json"
    return tuple(json.loads(path.read_text())) if path.exists() else ()


@cache
def differences(name: str) -> dict[str, str]:
    """The cases that are read otherwise on purpose: `id: why ours is the better reading`, a line each."""
    path = DIFFERENCES / f"{name}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(line.split(": ", 1) for line in lines if line.strip() and not line.startswith("#"))


def format_names(kind: str) -> list[str]:
    """The formats of the folder that a family here reads."""
    known = {name for family in load_families().values() for name in (family.name, *family.aliases)}
    return sorted(path.stem for path in (FOLDER / kind).glob("*.json") if path.stem in known)


def specs(case: dict[str, Any]) -> list[ToolSpec]:
    """The tools of a case."""
    functions = [tool.get("function", tool) for tool in case.get("tools") or () if isinstance(tool, dict)]
    # One case has its tool as a list of name, description and schema.
    functions = [{"name": f[0], "parameters": json.loads(f[2])} if isinstance(f, list) else f for f in functions]
    return [ToolSpec(f["name"], f.get("description") or "", f.get("parameters") or {}) for f in functions]


def opens_of(case: dict[str, Any], notation: TextNotation) -> str:
    """How the prompt ended: engines are given the text after a prompt that may have opened the reasoning."""
    thinking = notation.family.message.thinking
    if thinking is None or thinking.read_by_syntax or thinking.close == notation.family.message.preamble[1]:
        return ""
    text = case["text"]
    first = text.find(thinking.open)
    closes = text.find(thinking.close)
    closes_first = closes >= 0 and (first < 0 or closes < first)
    only_thought = bool(case.get("expected_reasoning")) and first < 0
    continues = str((case.get("options") or {}).get("continue_final_message", "")).endswith("REASONING")
    ends_in_content = str((case.get("options") or {}).get("continue_final_message", "")).endswith("CONTENT")
    return thinking.open if closes_first or continues or (only_thought and not ends_in_content) else ""


def events_of(case: dict[str, Any], notation: TextNotation, pieces: list[str]) -> list[ReaderEvent]:
    """What a case is read as."""
    reader = notation.reader(specs(case), opens=opens_of(case, notation))
    return [event for piece in pieces for event in reader.feed(piece)] + reader.close(stopped=True)


def is_a_fragment(case: dict[str, Any]) -> bool:
    """Whether a recording expects calls of which its text holds not even the names: the last chunk of a longer one."""
    return any(call["name"] not in case["text"] for call in case["expected_calls"])


def faults(case: dict[str, Any], events: list[ReaderEvent], *, by_convention: bool = False) -> list[str]:
    """Where the reading is not what the case asserts; all fields where it names none.

    With `by_convention`, five things that are otherwise here than in some engines, always and on purpose, count as
    right: what can't be read is an event and not content; reasoning is none either, also where an engine leaves it to
    another parser; text after a call is kept; a call that the text cuts off is malformed and not guessed; and a value
    of which no schema is known has the type that it looks like.
    """
    asserted = case.get("asserted") or ("content", "name", "args", "argval", "drop")
    found: list[str] = []
    calls = [event.call for event in events if isinstance(event, CallFinished)]
    wanted = case["expected_calls"]
    if by_convention and _is_cut_off(events):
        wanted = wanted[: len(calls)]
    if "drop" in asserted and len(calls) < len(wanted):
        found.append(f"{len(calls)} calls of {len(wanted)}")
    if "name" in asserted and [c.name for c in calls][: len(wanted)] != [c["name"] for c in wanted][: len(calls)]:
        found.append(f"names {[c.name for c in calls]}, wanted {[c['name'] for c in wanted]}")
    if ("name" in asserted or not wanted) and len(calls) > len(wanted):
        found.append(f"{len(calls)} calls where {len(wanted)} are wanted")
    known = {spec.name: ToolParameters(spec.parameters) for spec in specs(case)} if by_convention else None
    for call, want in zip(calls, wanted, strict=False):
        typed = known.get(call.name, ToolParameters({})) if known is not None else None
        found += _argument_faults(call.decode(), want["arguments"], asserted, typed)
    return found + _text_faults(case, events, asserted, by_convention)


def _is_cut_off(events: list[ReaderEvent]) -> bool:
    ends = [event for event in events if isinstance(event, CallFinished | CallMalformed)]
    return bool(ends) and isinstance(ends[-1], CallMalformed) and ends[-1].kind in ("truncated", "unclosed")


def _argument_faults(given: Any, want: Any, asserted: Any, typed: ToolParameters | None) -> list[str]:
    if not isinstance(given, dict) or not isinstance(want, dict):
        return [] if "argval" not in asserted or given == want else [f"arguments {given!r}, wanted {want!r}"]
    found = []
    if "args" in asserted and set(given) - set(want):
        found.append(f"keys beyond those wanted: {sorted(set(given) - set(want))}")
    for key, value in want.items():
        is_same = key in given and given[key] == value and (given[key] is True) == (value is True)
        if typed is not None and not is_same and key in given:
            is_same = _look_alike(given[key], value) and not typed.get(key).types - {"object", "array"}
        if "argval" in asserted and not is_same:
            found.append(f"{key} is {given.get(key)!r}, wanted {value!r}")
    return found


def _look_alike(given: Any, wanted: Any) -> bool:
    """Whether the two are the same but for quotes: 42 and "42"."""
    return json.dumps(given, sort_keys=True).replace('"', "") == json.dumps(wanted, sort_keys=True).replace('"', "")


def _text_faults(case: dict[str, Any], events: list[ReaderEvent], asserted: Any, by_convention: bool) -> list[str]:
    is_whole = "continue_final_message" not in (case.get("options") or {})
    given = {
        "content": "".join(e.text for e in events if isinstance(e, TextDelta)),
        "reasoning": "".join(e.text for e in events if isinstance(e, ReasoningDelta)),
    }
    found = []
    for field, text in given.items():
        wanted = (case.get(f"expected_{field}") or "").strip()
        same = text.strip() == wanted if is_whole else wanted.endswith(text.strip())
        if by_convention and not same:
            same = field == "reasoning" and not wanted
            same = same or (field == "content" and _is_content_elsewhere(wanted, events))
        if field in asserted and not same:
            found.append(f"{field} {text!r}, wanted {wanted!r}")
    return found


def _is_content_elsewhere(wanted: str, events: list[ReaderEvent]) -> bool:
    """Whether an engine with other conventions would give this content; markers that it leaves in don't count."""
    markers = {e.marker.strip() for e in events if isinstance(e, Framing)} | {"<think>"}
    plain = {_squeezed(wanted), _squeezed(_without(wanted, markers))}
    return any(
        _squeezed(text) in plain or _squeezed(_without(text, markers)) in plain for text in _other_contents(events)
    )


def _without(text: str, markers: set[str]) -> str:
    for marker in sorted(markers - {""}, key=len, reverse=True):
        text = text.replace(marker, "") if len(marker) > 2 else text
    return text


def _other_contents(events: list[ReaderEvent]) -> Iterator[str]:
    """What engines with other conventions would give as content."""
    shown = [e for e in events if isinstance(e, TextDelta | CallMalformed)]
    yield "".join(e.text if isinstance(e, TextDelta) else e.raw for e in shown)
    thought = [e for e in events if isinstance(e, TextDelta | ReasoningDelta)]
    yield "".join(e.text for e in thought)
    calls = {e.index for e in events if isinstance(e, CallStarted)}
    if not calls:
        yield "".join(e.marker if isinstance(e, Framing) else getattr(e, "text", "") for e in events)
    begins = (at for at, e in enumerate(events) if isinstance(e, CallStarted | CallMalformed))
    before = events[: next(begins, len(events))]
    yield "".join(e.text for e in before if isinstance(e, TextDelta))
    last = max((at for at, e in enumerate(events) if isinstance(e, CallStarted)), default=0)
    yield "".join(e.text for e in events[:last] if isinstance(e, TextDelta))
    # With the markers of reasoning, up to the call and what belongs to its marker.
    yield "".join(e.marker if isinstance(e, Framing) else getattr(e, "text", "") for e in before[:-1])


def _squeezed(text: str) -> str:
    return "".join(text.split())
