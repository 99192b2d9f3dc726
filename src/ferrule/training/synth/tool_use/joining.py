"""Joins requests that a user makes at once: `weather in Paris and Oslo`, `list my notes, then delete invoice A-1`."""

import random
from collections.abc import Sequence

from ferrule.training.synth.noise import OPENERS, Piece, add_noise
from ferrule.training.synth.tool_use.arguments import draw_value, say_value
from ferrule.training.synth.tool_use.calls import ForeignCall, make_call
from ferrule.training.synth.tool_use.requests import ToolRequest
from ferrule.training.synth.tool_use.templates import Value
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import split_words

_JOINTS = (
    " and ", ", and ", ". ", ". Also, ", "; ", ", then ", " and then ", ". Then ", " and also ", ". After that, ",
    ", also ", " - and ", ". And ", " plus ", "\n", ". Next: ", ", ",
)  # fmt: skip
_STARTERS = frozenset(
    split_words(
        "what what's how how's is are can could will does do did show give find list get tell the any who where when"
        " which please add remove set make let"
    )
)
_LEADS = ("", "", "", "", "", "two things: ", "first ", "please ", "1) ")


def join_requests(rng: random.Random, texts: Sequence[str]) -> str:
    """Several requests as one message, in their order."""
    lead = pick(rng, _LEADS) if len(texts) == 2 else ""
    if lead == "1) ":
        return f"1) {_bare(texts[0])} 2) {texts[1]}"
    joint = ", then " if lead == "first " else pick(rng, _JOINTS)
    written = lead + _bare(texts[0])
    for text in texts[1:]:
        starts_sentence = joint.endswith((". ", "\n")) and rng.random() < 0.6
        following = text[:1].upper() + text[1:] if starts_sentence else _lower_first(text)
        written += joint + _bare(following)
    return written + ("?" if texts[-1].endswith("?") and rng.random() < 0.7 else "")


def _bare(text: str) -> str:
    return text.rstrip("?.! ")


def _lower_first(text: str) -> str:
    """The text as it goes on a sentence; a name at its start keeps its capital."""
    first = text.split(" ", 1)[0].lower().strip(",.:")
    is_plain = first in OPENERS or first in _STARTERS
    return text[:1].lower() + text[1:] if is_plain else text


def repeat_for_another(
    rng: random.Random, request: ToolRequest, held_out: bool
) -> tuple[str, list[ForeignCall]] | None:
    """The request for a second value of the parameter that ends it; None if it ends in no such value."""
    name = request.ends_with
    if name is None:
        return None
    parameter = request.tool.template.get_parameter(name)
    first = request.values[name]
    if parameter.type.is_list or not isinstance(first, str) or parameter.type.options or parameter.source == "text":
        return None
    others: list[Value] = []
    for _ in range(1 if rng.random() < 0.8 else 2):
        value = draw_value(rng, parameter, held_out=held_out, unlike=first)
        if value not in (first, parameter.default, *others):
            others.append(value)
    # The label of a result is its call's first argument, which has to tell the results apart.
    given = next(p.name for p in request.tool.template.parameters if p.name in request.values)
    if not others or " and " in first or given != name:
        return None
    quote = request.pieces[-1].text[0] if request.pieces[-1].text[0] in "\"'" else ""
    said = [f"{quote}{value}{quote}" if quote else say_value(rng, parameter, value).text for value in others]
    joint = pick(rng, (" and ", " and ", " and ", ", and ", " and also ", " & ", " as well as ", " and for "))
    tail = "".join(f", {text}" for text in said[:-1]) + joint + said[-1]
    pieces = [*request.pieces, Piece(tail, fixed=True)]
    calls = [make_call(request.tool, {**request.values, name: value}) for value in (first, *others)]
    return add_noise(rng, pieces, "chat"), calls
