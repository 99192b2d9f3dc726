"""Reads a call that a model wrote in another notation than its own, from the text between the call's markers.

These are the notations that models fall back to: a JSON object with a name and arguments, or a list of them; calls in
Python; a name followed by its arguments in JSON, or by nothing. The tool's schema must accept the arguments, and the
finished call names the notation among its repairs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ferrule.dialects.notations.json_array import JsonArray, Named
from ferrule.dialects.notations.json_object import Keys
from ferrule.dialects.notations.pythonic import Pythonic
from ferrule.dialects.reader.calls import CallBuilder, Calls
from ferrule.dialects.reader.message import ReadableSyntax
from ferrule.dialects.reader.repair import (
    EMPTY_ARGUMENTS,
    JSON_ARGUMENTS,
    JSON_CALL,
    JSON_LIST,
    PYTHON_CALL,
    RepairedCall,
    apply_repair,
    repair_json,
    reread_arguments,
)
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall
from ferrule.events import CallFinished, CallMalformed
from ferrule.toolspec import ToolSpec

_KEYS = Keys(("name", "tool_name"), ("arguments", "parameters", "args"), ("id", "call_id", "tool_call_id"))
_JSON = JsonArray("calls", element=Named(_KEYS))
# With a closer that the text doesn't have, the calls end where the text does.
_PYTHON = Pythonic("calls", "\0")
_NAME = re.compile(r"(?:call:)?\s*+(?:functions\.)?([\w.\-/]++)(?::\d++)?\s*+")
_METHOD = ".call"
_NOTHING = frozenset({"", "[]", "{}", "()", "null", "None", '""'})


def recover_call(stream: InputStream, calls: Calls, call: CallBuilder, raw: str, syntax: ReadableSyntax) -> bool:
    """Finish a call that could not be read, if its text is one of another notation; False if it isn't.

    It must have been closed or, in a notation without closers, not cut off.
    """
    body, is_closed = _strip_markers(raw, syntax)
    if not is_closed and (any(syntax.closers) or (stream.ended and not stream.stopped)):
        return False
    whole = parse_foreign_calls(body, calls)
    return whole is not None and apply_repair(stream, calls, call, whole)


def _strip_markers(raw: str, syntax: ReadableSyntax) -> tuple[str, bool]:
    """(the text between a call's markers, whether it was closed)."""
    body, is_closed = raw.strip(), False
    openers, closers = ([one.strip() for one in markers if one.strip()] for markers in (syntax.openers, syntax.closers))
    while opener := next((one for one in openers if body.startswith(one)), ""):
        body = body.removeprefix(opener).lstrip()
    while closer := next((one for one in closers if body.endswith(one)), ""):
        body, is_closed = body.removesuffix(closer).rstrip(), True
    return body, is_closed


def parse_foreign_calls(text: str, calls: Calls) -> RepairedCall | None:
    """The calls that a text consists of, those after the first in its `after`; None for any other text."""
    found = _parse_json(text) if text.startswith(("{", "[", "```")) else _parse_named(text, calls)
    found = found or _parse_python(text, calls)
    return replace(found[0], after=tuple(found[1:])) if found else None


def _parse_json(text: str) -> list[RepairedCall]:
    # A list may have begun before the text of the call that couldn't be read.
    repaired = repair_json(text) or repair_json(f"[{text}")
    if repaired is None or "extra_closer" in repaired[1]:
        return []
    written, repairs = _unnest(repaired[0]), repaired[1]
    form = JSON_LIST if written.lstrip().startswith("[") else JSON_CALL
    return [replace(one, repairs=(form, *repairs)) for one in _read_whole(_JSON, written)]


def _unnest(text: str) -> str:
    """The objects of calls without the one around them that OpenAI's API has."""
    if '"function"' not in text:
        return text
    value = json.loads(text)
    return json.dumps([get_function(one) for one in value] if isinstance(value, list) else get_function(value))


def get_function(value: Any) -> Any:
    """The object of a call inside the one around it, if any, that OpenAI's API has."""
    inner = value.get("function") if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else value


def _parse_named(text: str, calls: Calls) -> list[RepairedCall]:
    """A name, and its arguments in JSON or none: a name alone must be that of a tool that was offered."""
    found = _NAME.match(text)
    if found is None:
        return []
    rest = text[found.end() :]
    if rest in _NOTHING:
        is_known = calls.get_parameters(found[1]) is not None
        return [RepairedCall(found[1], "{}", (EMPTY_ARGUMENTS,))] if is_known else []
    arguments = reread_arguments(rest) if rest.startswith(("{", "```")) else None
    return [replace(arguments, name=found[1], repairs=(JSON_ARGUMENTS, *arguments.repairs))] if arguments else []


def _parse_python(text: str, calls: Calls) -> list[RepairedCall]:
    found = _read_whole(_PYTHON, text.removeprefix("call:"), calls.tools)
    return [replace(one, name=_choose_name(one.name, calls), repairs=(PYTHON_CALL,)) for one in found]


def _choose_name(name: str, calls: Calls) -> str:
    """The name of the tool in `weather.call(…)`, as Llama 3 calls tools that it calls built-in."""
    is_method = name.endswith(_METHOD) and calls.get_parameters(name) is None
    return name.removesuffix(_METHOD) if is_method else name


def _read_whole(syntax: JsonArray | Pythonic, text: str, tools: Sequence[ToolSpec] = ()) -> list[RepairedCall]:
    """The calls that a syntax reads in a text without markers; empty if it is not all of them."""
    stream = InputStream(text)
    stream.finish(stopped=True)
    try:
        for _ in syntax.read(stream, Calls(tools, repair=False), syntax.open):
            pass
    except (NotACall, EndOfText):
        return []
    if text[stream.at :].strip() or any(isinstance(event, CallMalformed) for event in stream.events):
        return []
    calls = [(event.index, event.call) for event in stream.events if isinstance(event, CallFinished)]
    return [
        RepairedCall(call.name, call.arguments, (), call.id if call.id != f"call_{index + 1}" else None)
        for index, call in calls
    ]
