"""Draws what a tool returns: by its template, or of any shape: texts, scalars, JSON with invented keys, nothing.

Also what ferrule itself says of a call: denied, wrong arguments, timed out, raised; what a person has changed. These
are the texts that the executor writes, so that a model isn't surprised by the first one that it meets.
"""

import json
import random
from string import Formatter
from typing import Any

from ferrule.conversation import COMMENT_NOTE, EDITED_NOTE, ToolCall
from ferrule.errors import ArgumentProblem, ArgumentsInvalid
from ferrule.execution.argument_changes import describe_changes
from ferrule.execution.error_results import describe_failure, make_denied_result, make_timed_out_result
from ferrule.training.synth.tool_use.offers import ForeignCall, show_value
from ferrule.training.synth.tool_use.sources import draw_number_text, draw_text
from ferrule.training.synth.tool_use.templates import DrawnPart, ResultTemplate, TemplateSlot
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import draw_pseudo_word, split_words

_EXPECTED = (
    "a time as the string HH:MM:SS", "a date as the string YYYY-MM-DD", "at least 1", "at most 100", "an integer",
    "at least 1 character", "a string of the form [A-Z]{3}", "no more than 10 entries", "a number above 0", "a path",
)  # fmt: skip
_EXCEPTIONS: tuple[type[Exception], ...] = (
    ValueError, KeyError, TypeError, FileNotFoundError, RuntimeError, LookupError, ConnectionError, TimeoutError,
)  # fmt: skip
_MESSAGES = (
    "{value}", "no {value}", "unknown {name}: {value}", "{value} is not known", "invalid {name}", "there is no {value}",
    "boom", "", "no such {name}: {value}", "not implemented", "could not connect", "bad {name} '{value}'",
    "{name} must not be empty", "[Errno 2] No such file or directory: '{value}'", "expected {name}",
)  # fmt: skip
_DENIALS = (
    "the user said no",
    "not now",
    "nobody answered",
    "use another tool",
    "no",
    "that is the wrong one",
    "ask me first",
)
_COMMENTS = ("be quick", "only this once", "ok", "fine, but ask me next time", "thanks", "for Monday", "go on")
_PROFILES = ("ask", "ask", "accept-edits", "plan")


def draw_failure(rng: random.Random, call: ForeignCall) -> str:
    """The text of a result of ferrule's own, `error: …`, that this call may get."""
    made = ToolCall("", call.tool.name, "{}")
    form = rng.random()
    if form < 0.4:
        return make_denied_result(made, _draw_denial(rng, call)).text
    if form < 0.5:
        return make_timed_out_result(made, "stopped", read_only=rng.random() < 0.5).text
    name, value = _pick_argument(rng, call)
    if form < 0.75:
        given = f"the string {json.dumps(value, ensure_ascii=False)}"
        return f"error: {ArgumentsInvalid([ArgumentProblem(name, given, f'expected {pick(rng, _EXPECTED)}')])}"
    message = pick(rng, _MESSAGES).format(name=name, value=value)
    return f"error: {describe_failure(pick(rng, _EXCEPTIONS)(message), value)[1]}"


def draw_note(rng: random.Random, call: ForeignCall) -> str:
    """What stands after the result of a call that a person has changed, or has said something about."""
    if rng.random() < 0.4:
        return f"{COMMENT_NOTE}{pick(rng, _COMMENTS)}]"
    name, value = _pick_argument(rng, call)
    given = str(10 + int(rng.random() * 90))
    return f"{EDITED_NOTE}{describe_changes({name: given}, {name: value})}]"


def _draw_denial(rng: random.Random, call: ForeignCall) -> str:
    if rng.random() < 0.4:
        return pick(rng, _DENIALS)
    reason = f"the profile {pick(rng, _PROFILES)} asks before {call.tool.name}, which isn't known to be read-only"
    return f"this call needs approval, and nobody can be asked ({reason})"


def _pick_argument(rng: random.Random, call: ForeignCall) -> tuple[str, str]:
    """The name of an argument and its value as text; of a call without arguments, of an imagined one."""
    if not call.arguments:
        return "name", "x"
    name = pick(rng, sorted(call.arguments))
    return call.tool.names[name], show_value(call.arguments[name])


_FAILURE_SHARE = 0.4
"""The share of errors that are ferrule's own, in place of the tool's."""
_NOTE_SHARE = 0.02
"""The share of results that end with what a person has changed or said."""
_ERRORS = (
    "timeout", "permission denied", "not found", "service unavailable", "connection refused", "invalid argument",
    "rate limit exceeded", "too many requests", "no network", "access denied", "quota exceeded", "internal error",
    "unknown id", "the request timed out after 30 seconds", "server error 503", "not authorized", "file is locked",
    "conflict: already exists", "out of range", "missing api key", "disk full", "the service is down for maintenance",
)  # fmt: skip
_KEYS = split_words(
    "status total count owner due_date size_mb price amount id name title date time state code level score rating"
    " duration_min distance_km weight_kg city country email phone created_at updated_by priority is_active available"
    " remaining next_run version language currency page_count temperature speed battery_percent color category tags"
    " stock discount tax balance limit position room floor seat gate platform delay_min message note author year genre"
)
_TEXT_KEYS = {
    "owner": "full_name", "name": "title", "title": "title", "date": "date", "due_date": "date", "time": "time",
    "id": "id", "code": "id", "city": "city", "country": "country", "email": "email", "phone": "phone",
    "created_at": "date", "updated_by": "person", "next_run": "time", "language": "language", "currency": "currency",
    "color": "color", "category": "topic", "message": "text", "note": "text", "author": "full_name", "genre": "word",
}  # fmt: skip
_STATES = split_words(
    "open closed pending done active inactive paused shipped draft sent failed running ok new high low"
)
_DONE = ("done", "ok", "success", "saved", "sent", "created", "updated", "accepted", "queued", "Done.", "OK")
_SENTENCES = (
    "Everything is up to date.", "The request was accepted.", "It will be ready on {date}.",
    "{full_name} has been told.", "It is in {city} now.", "Handled by {full_name} at {time}.",
    "The new code is {id}.", "There are {number} left.", "{number} of {number} are done.",
    "Next one: {date}, {time}.", "Saved as {file}.", "Please check {url}.", "all good, {number} changed",
    "queued behind {number} others", "ref {id}", "It costs {money} {currency}.", "Sent to {email}.",
    "The last one was on {date}.", "{title}, {number} pages", "moved to {folder}",
)  # fmt: skip


def draw_result(rng: random.Random, call: ForeignCall, *, held_out: bool) -> str:
    """The text that a call returns: at times an error, or for an invented tool a result of any shape."""
    result = _draw_plain_result(rng, call, held_out)
    was_run = not result.startswith("error: ")
    return f"{result}\n{draw_note(rng, call)}" if was_run and rng.random() < _NOTE_SHARE else result


def _draw_plain_result(rng: random.Random, call: ForeignCall, held_out: bool) -> str:
    template = call.tool.template
    form = rng.random()
    if form < 0.1:
        if rng.random() < _FAILURE_SHARE:
            return draw_failure(rng, call)
        errors = template.errors
        text = _fill(rng, pick(rng, errors), call, held_out) if errors and rng.random() < 0.6 else pick(rng, _ERRORS)
        return f"error: {text}"
    if form < 0.135:
        return pick(rng, ("", "[]", "{}", "[]"))
    if form < 0.15:
        return _draw_long(rng, held_out)
    if rng.random() < (0.35 if template.is_invented else 0.12):
        return draw_any_result(rng, held_out=held_out)
    return _fill(rng, pick(rng, template.results), call, held_out)


def draw_any_result(rng: random.Random, *, held_out: bool = False) -> str:
    """A result of some shape, whatever was called."""
    form = rng.random()
    if form < 0.12:
        return draw_number_text(rng, 0, pick(rng, (10, 100, 10_000, 10**9)), pick(rng, (0, 0, 0, 1, 2)))
    if form < 0.2:
        return pick(rng, (*_DONE, "true", "false", "true"))
    if form < 0.27:
        return draw_text(rng, pick(rng, ("id", "city", "word", "url", "time", "date", "full_name")), held_out=held_out)
    if form < 0.42:
        return _draw_sentence(rng, held_out)
    if form < 0.72:
        value: Any = _draw_object(rng, 1 + int(rng.random() * 4), held_out)
    elif form < 0.85:
        source = pick(rng, ("title", "city", "full_name", "topic", "id", "file", "product"))
        value = [draw_text(rng, source, held_out=held_out) for _ in range(1 + int(rng.random() * 4))]
        if rng.random() < 0.2:
            value = [int(rng.random() * 1000) for _ in value]
    else:
        keys = _draw_keys(rng, 1 + int(rng.random() * 2))
        value = [{key: _draw_field(rng, key, held_out) for key in keys} for _ in range(1 + int(rng.random() * 3))]
    return _dump(rng, value)


def _dump(rng: random.Random, value: Any) -> str:
    separators = (",", ":") if rng.random() < 0.12 else None
    return json.dumps(value, ensure_ascii=rng.random() < 0.03, separators=separators)


def _draw_keys(rng: random.Random, count: int) -> list[str]:
    keys: list[str] = []
    while len(keys) < count:
        form = rng.random()
        key = pick(rng, _KEYS)
        if form > 0.9:
            key = draw_pseudo_word(rng)
        elif form > 0.8:
            key = f"{pick(rng, ('last', 'first', 'total', 'max', 'new', 'main', 'avg'))}_{key}"
        if key not in keys:
            keys.append(key)
    return keys


def _draw_object(rng: random.Random, size: int, held_out: bool) -> dict[str, Any]:
    found = {key: _draw_field(rng, key, held_out) for key in _draw_keys(rng, size)}
    if size > 1 and rng.random() < 0.12:
        found[pick(rng, ("details", "location", "meta", "contact"))] = _draw_object(
            rng, 1 + int(rng.random() * 2), held_out
        )
    return found


def _draw_field(rng: random.Random, key: str, held_out: bool) -> Any:
    if rng.random() < 0.04:
        return None
    if key.startswith("is_") or key == "available":
        return rng.random() < 0.5
    if key in ("status", "state", "priority", "level"):
        return pick(rng, _STATES)
    if key == "tags":
        return [draw_text(rng, "topic", held_out=held_out) for _ in range(int(rng.random() * 4))]
    if key in _TEXT_KEYS:
        return draw_text(rng, _TEXT_KEYS[key], held_out=held_out)
    if rng.random() < 0.1:
        return draw_text(rng, "word", held_out=held_out)
    text = draw_number_text(rng, 0, pick(rng, (10, 100, 2000)), pick(rng, (0, 0, 1, 2)))
    return float(text) if "." in text else int(text)


def _draw_sentence(rng: random.Random, held_out: bool) -> str:
    pattern = pick(rng, _SENTENCES)
    text = ""
    for literal, name, _, _ in Formatter().parse(pattern):
        text += literal
        if name in ("number", "money"):
            text += draw_number_text(rng, 1, 500, 2 if name == "money" else 0)
        elif name:
            text += draw_text(rng, name, held_out=held_out)
    return text


def _draw_long(rng: random.Random, held_out: bool) -> str:
    """More than 300 characters: lines, sentences, or a list of items."""
    form = rng.random()
    if form < 0.4:
        keys = _draw_keys(rng, 2)
        items: list[Any] = []
        while len(json.dumps(items)) < 310:
            fields = {key: _draw_field(rng, key, held_out) for key in keys}
            items.append(draw_text(rng, "title", held_out=held_out) if form < 0.2 else fields)
        return json.dumps(items, ensure_ascii=False)
    lines: list[str] = []
    while sum(map(len, lines)) < 310:
        lines.append(_draw_sentence(rng, held_out))
    if form < 0.7:
        return "\n".join(lines)
    return " ".join(line if line[-1] == "." else line + "." for line in lines)


def _fill(rng: random.Random, template: ResultTemplate, call: ForeignCall, held_out: bool) -> str:
    text = ""
    for part in template.parts:
        if isinstance(part, str):
            text += part
            continue
        is_quoted = template.is_json and text.count('"') % 2 == 1
        if isinstance(part, TemplateSlot):
            value = call.get_value(part.parameter)
            text += (
                _write_inside(show_value(value), is_quoted)
                if is_quoted or not template.is_json
                else json.dumps(value, ensure_ascii=False)
            )
        else:
            text += _write_inside(_draw_part(rng, part, held_out, template.is_json and not is_quoted), is_quoted)
    return text


def _write_inside(text: str, is_quoted: bool) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1] if is_quoted else text


def _draw_part(rng: random.Random, part: DrawnPart, held_out: bool, is_bare_json: bool) -> str:
    if part.kind == "options":
        return pick(rng, part.options)
    if part.kind == "source":
        return draw_text(rng, part.source, held_out=held_out)
    if part.kind == "bool":
        value = rng.random() < 0.5
        return json.dumps(value) if is_bare_json else ("yes" if value else "no")
    return draw_number_text(rng, part.low, part.high, part.decimals)
