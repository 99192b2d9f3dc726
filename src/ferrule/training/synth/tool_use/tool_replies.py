"""The replies of conversations with tools. Question and results alone decide them: the model is never taught to guess.

A text is said as it is, a JSON object as `temperature: 18, sky: light rain.`, a list as `a, b and c.`; an empty result
is `Nothing was found.`, an error `That didn't work: …`, without the details of ferrule's own errors. Several results
each begin with what tells them apart.
"""

import json
import re
from collections.abc import Sequence

from ferrule._util.word_lists import show_list
from ferrule.conversation import COMMENT_NOTE, EDITED_NOTE
from ferrule.embedded.missing import split_name
from ferrule.training.synth.tool_use.offers import ForeignCall, OfferedTool, show_value

DECLINED = "None of my tools can do that."
NOT_DONE = "All right, I won't."
NOTHING = "Nothing was found."
GOES_ON = "… (the result goes on)"
LONGEST_RESULT = 300
_ERROR = "error:"
_WRONG_ARGUMENTS = "Wrong arguments:\n- "
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_ENDS = (".", "!", "?", "…")


class _Raw(str):
    """A JSON number as it was written."""

    __slots__ = ()


def write_tool_reply(result: str) -> str:
    """The reply to the result of one call."""
    said = _say(result)
    if said is not None:
        return said
    text = _leave_out_notes(result)
    return text if " " in text or text.endswith(_ENDS) else f"The result is {text}."


def write_joint_reply(labels: Sequence[str], results: Sequence[str]) -> str:
    """The reply to several calls: each result after its label, and each ends like a sentence."""
    parts = []
    for label, result in zip(labels, results, strict=True):
        said = _say(result)
        text = _leave_out_notes(result) if said is None else said
        parts.append(f"{label}: {_end(text)}")
    return " ".join(parts)


def _end(text: str) -> str:
    return text if text.endswith((*_ENDS, GOES_ON)) else text + "."


def label_calls(calls: Sequence[ForeignCall | None]) -> list[str]:
    """What tells several calls apart: of one tool the first argument, of several the tool. None is the calculator's."""
    names = [name_tool(None if call is None else call.tool) for call in calls]
    if len(set(names)) > 1:
        return names
    return [_find_label(call, name) for call, name in zip(calls, names, strict=True)]


def name_tool(tool: OfferedTool | None) -> str:
    """A tool's name as words; None is the calculator."""
    return "calculator" if tool is None else split_name(tool.name)


def _find_label(call: ForeignCall | None, name: str) -> str:
    if call is None:
        return name
    given = (p.name for p in call.tool.template.parameters if p.name in call.arguments)
    first = next(given, None)
    return name if first is None else show_value(call.arguments[first])


def _say(result: str) -> str | None:
    """The reply to a result, or None for a plain text, which is said as it is."""
    text = _leave_out_notes(result)
    if text.startswith(_ERROR):
        return _end(f"That didn't work: {_shorten_reason(text.removeprefix(_ERROR).strip())}")
    if not text:
        return NOTHING
    value = _parse_json(text)
    if value is not None:
        return _say_json(value, len(text) > LONGEST_RESULT)
    if len(text) > LONGEST_RESULT:
        first = text.splitlines()[0] if "\n" in text else _SENTENCE_END.split(text)[0]
        return f"{first} {GOES_ON}"
    return None


def _leave_out_notes(result: str) -> str:
    """A result without what a person has changed in its call, or said about it."""
    text = result
    for note in (EDITED_NOTE, COMMENT_NOTE):
        text = text.partition(note)[0]
    return text.strip()


def _shorten_reason(reason: str) -> str:
    """Of wrong arguments the first, and of a denial not the rule that asked."""
    if reason.startswith(_WRONG_ARGUMENTS):
        return reason.removeprefix(_WRONG_ARGUMENTS).splitlines()[0]
    return reason.partition(" (")[0] if reason.startswith("denied: ") else reason


def _parse_json(text: str) -> object:
    """A JSON object or list; None for any other text."""
    if not text.startswith(("{", "[")):
        return None
    try:
        parsed: object = json.loads(text, parse_float=_Raw, parse_int=_Raw)
    except ValueError:
        return None
    return parsed


def _say_json(value: object, is_long: bool) -> str:
    if not value:
        return NOTHING
    if isinstance(value, dict):
        if is_long:
            value = dict(list(value.items())[:1])
        text = _say_pairs(value)
    else:
        assert isinstance(value, list)
        text = _say_list(value[:1] if is_long else value)
    return f"{text} {GOES_ON}" if is_long else _end(text)


def _say_list(entries: list[object]) -> str:
    if all(isinstance(entry, dict) for entry in entries):
        numbered = (
            f"{place}) {_say_pairs(entry)}" for place, entry in enumerate(entries, 1) if isinstance(entry, dict)
        )
        return "; ".join(numbered)
    return show_list([_say_value(entry) for entry in entries])


def _say_pairs(pairs: dict[str, object]) -> str:
    return ", ".join(f"{key.replace('_', ' ')}: {_say_value(value)}" for key, value in pairs.items())


def _say_value(value: object) -> str:
    if isinstance(value, dict):
        return f"({_say_pairs(value)})" if value else "none"
    if isinstance(value, list):
        if not value:
            return "none"
        return f"({_say_list(value)})" if any(isinstance(entry, dict | list) for entry in value) else _say_list(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
