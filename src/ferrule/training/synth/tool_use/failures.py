"""Draws what ferrule itself says of a call: denied, wrong arguments, timed out, raised; what a person has changed.

The texts are those that the executor writes, so that a model isn't surprised by the first one that it meets.
"""

import json
import random

from ferrule.conversation import COMMENT_NOTE, EDITED_NOTE, ToolCall
from ferrule.errors import ArgumentProblem, ArgumentsInvalid
from ferrule.execution.argument_changes import describe_changes
from ferrule.execution.error_results import describe_failure, make_denied_result, make_timed_out_result
from ferrule.training.synth.tool_use.calls import ForeignCall, show_value
from ferrule.training.synth.wheel import pick

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
