"""Draws what a user asks of one tool: a phrasing of its template with values, and what the call then is.

Several requests are joined as a user makes them at once: `weather in Paris and Oslo`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ferrule.embedded.missing import split_name
from ferrule.training.synth.noise import OPENERS, Piece, add_noise
from ferrule.training.synth.tool_use.arguments import draw_value, say_value
from ferrule.training.synth.tool_use.offers import ForeignCall, OfferedTool, make_call
from ferrule.training.synth.tool_use.templates import (
    TemplateParameter,
    TemplateSetting,
    TemplateSlot,
    ToolPhrasing,
    Value,
    expand_phrasing,
)
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import split_words

_MENTION_SHARE = 0.14
_EXPLICIT_SHARE = 0.06
_MENTIONS = (
    ", {name} {value}", ", {name}: {value}", " ({name} {value})", " with {name} {value}", ", {name} = {value}",
    ", the {name} should be {value}", ", set {name} to {value}", ", using {value} as {name}", "; {name} {value}",
)  # fmt: skip
_SWITCHED_ON = (
    " with {name}", ", {name}", ", {name} on", " ({name})", ", {name}: yes", ", {name}=true", ", with {name} enabled",
    ", and {name} please", ", {name} true",
)  # fmt: skip
_SWITCHED_OFF = (
    " without {name}", ", no {name}", ", {name} off", ", {name}: no", ", {name}=false", " (not {name})",
    ", with {name} disabled", ", {name} false",
)  # fmt: skip
_EXPLICIT = (
    "use {tool} with ", "call {tool} with ", "run {tool}: ", "{tool}: ", "{tool} ", "please {tool}, ",
    "I'd like you to use {tool}. ", "execute {tool} with ", "{tool} - ", "do a {tool} with ", "start {tool}: ",
)  # fmt: skip
_EXPLICIT_BARE = (
    "use {tool}",
    "call {tool}",
    "run {tool}",
    "{tool}",
    "{tool} please",
    "execute {tool}",
    "I need {tool}",
)
_PLURAL = re.compile(r" ([a-z]+s)\b")
_SIBILANT = ("ss", "us", "is", "news", "plus", "always", "this", "has", "was", "as")


@dataclass(slots=True)
class ToolRequest:
    """A request and the values it gives, by the template's names; `missing` are required ones that it lacks."""

    tool: OfferedTool
    pieces: list[Piece]
    values: dict[str, Value]
    missing: tuple[TemplateParameter, ...] = ()
    ends_with: str | None = None
    """The parameter whose value ends the request."""

    def write(self, rng: random.Random) -> str:
        """The request with a user's noise."""
        return add_noise(rng, self.pieces, "tool")

    def write_plainly(self) -> str:
        """The request as it is."""
        return " ".join("".join(piece.text for piece in self.pieces).split(" "))


def draw_request(
    rng: random.Random, tool: OfferedTool, *, held_out: bool, is_clear: bool = False, lacks: bool = False
) -> ToolRequest | None:
    """A request for a call of a tool; with `lacks`, one that lacks a required argument: None if there is none.

    With `is_clear`, free texts stand in quotes, so that more words can follow.
    """
    if lacks:
        return _draw_incomplete(rng, tool, held_out, is_clear)
    if rng.random() < _EXPLICIT_SHARE and all(p.is_drawable for p in tool.required):
        return _draw_explicit(rng, tool, held_out, is_clear, tool.required)
    complete = [phrasing for phrasing in tool.template.phrasings if not phrasing.is_incomplete]
    request = _fill(rng, tool, pick(rng, complete), held_out, is_clear)
    _mention_options(rng, request, held_out)
    return request


def _draw_incomplete(rng: random.Random, tool: OfferedTool, held_out: bool, is_clear: bool) -> ToolRequest | None:
    if not tool.required or not all(p.is_drawable for p in tool.required):
        return None
    lacking = [phrasing for phrasing in tool.template.phrasings if phrasing.is_incomplete]
    if lacking and rng.random() < 0.9:
        request = _fill(rng, tool, pick(rng, lacking), held_out, is_clear)
    else:
        given = [parameter for parameter in tool.required if rng.random() < 0.4]
        request = _draw_explicit(rng, tool, held_out, is_clear, tuple(given[: len(tool.required) - 1]))
    request.missing = tuple(parameter for parameter in tool.required if parameter.name not in request.values)
    return request if request.missing else None


def _fill(rng: random.Random, tool: OfferedTool, phrasing: ToolPhrasing, held_out: bool, is_clear: bool) -> ToolRequest:
    parts: list[str | TemplateSlot | TemplateSetting] = []
    expand_phrasing(phrasing.node, rng, parts)
    values: dict[str, Value] = {}
    pieces: list[Piece] = []
    for place, part in enumerate(parts):
        if isinstance(part, TemplateSetting):
            values[part.parameter] = part.value
        elif isinstance(part, str):
            pieces.append(Piece(part))
        else:
            parameter = tool.template.get_parameter(part.parameter)
            if part.parameter not in values:
                values[part.parameter] = draw_value(rng, parameter, held_out=held_out)
            before = pieces[-1].text[-1:] if pieces else ""
            following = parts[place + 1] if place + 1 < len(parts) else ""
            after = following[:1] if isinstance(following, str) else ""
            runs_on = parameter.source == "text" and after.isspace() and rng.random() < 0.75
            said = say_value(
                rng, parameter, values[part.parameter], before=before, after=after, is_clear=is_clear or runs_on
            )
            pieces.append(Piece(said.text, fixed=True, open_ended=said.is_open, is_last=said.is_sentence))
    _use_singular(parts, values, pieces)
    last = parts[-1]
    return ToolRequest(tool, pieces, values, ends_with=last.parameter if isinstance(last, TemplateSlot) else None)


def _use_singular(
    parts: list[str | TemplateSlot | TemplateSetting], values: Mapping[str, Value], pieces: list[Piece]
) -> None:
    """`1 days` as `1 day`."""
    written = [part for part in parts if not isinstance(part, TemplateSetting)]
    for part, piece in zip(written[:-1], pieces[1:], strict=True):
        if isinstance(part, TemplateSlot) and values[part.parameter] == 1 and not piece.fixed:
            match = _PLURAL.match(piece.text)
            if match and not match[1].endswith(_SIBILANT):
                piece.text = " " + match[1][:-1] + piece.text[match.end() :]


def _mention_options(rng: random.Random, request: ToolRequest, held_out: bool) -> None:
    """Set an optional parameter by its name: what any template can be extended by."""
    template = request.tool.template
    free = [p for p in template.parameters if not p.required and p.name not in request.values]
    if not free or rng.random() > _MENTION_SHARE or request.pieces[-1].is_last:
        return
    parameter = pick(rng, free)
    name = split_name(request.tool.names[parameter.name])
    last = request.pieces[-1]
    if not last.fixed:
        last.text = last.text.rstrip("?.! ")
    if parameter.type.scalar == "bool" and not parameter.type.is_list:
        value = not parameter.default
        form = pick(rng, _SWITCHED_ON if value else _SWITCHED_OFF)
        request.values[parameter.name] = value
        request.pieces.append(Piece(form.format(name=name), fixed=True))
    elif parameter.is_drawable:
        drawn = draw_value(rng, parameter, held_out=held_out)
        said = say_value(rng, parameter, drawn, is_clear=True)
        request.values[parameter.name] = drawn
        request.pieces.append(Piece(pick(rng, _MENTIONS).format(name=name, value=said.text), fixed=True))
    request.ends_with = None


def _draw_explicit(
    rng: random.Random, tool: OfferedTool, held_out: bool, is_clear: bool, given: tuple[TemplateParameter, ...]
) -> ToolRequest:
    """A request that names the tool and its parameters, as any tool can be asked for."""
    name = tool.name if rng.random() < 0.5 else split_name(tool.name)
    values: dict[str, Value] = {}
    texts: list[str] = []
    style = rng.random()
    is_sentence = False
    for parameter in given:
        values[parameter.name] = draw_value(rng, parameter, held_out=held_out)
        is_last = parameter is given[-1]
        said = say_value(rng, parameter, values[parameter.name], is_clear=is_clear or not is_last)
        is_sentence = said.is_sentence
        label = tool.names[parameter.name] if style < 0.3 else split_name(tool.names[parameter.name])
        if style < 0.2:
            texts.append(f"{label}={said.text}")
        elif style < 0.75 or len(given) > 1:
            texts.append(f"{label}{': ' if 0.3 < style < 0.5 else ' '}{said.text}")
        else:
            texts.append(said.text)
    opening = pick(rng, _EXPLICIT if given else _EXPLICIT_BARE).format(tool=name)
    joint = ", " if rng.random() < 0.6 or is_clear else " and "
    pieces = [Piece(opening, fixed=True)]
    if given:
        pieces.append(Piece(joint.join(texts), fixed=True, open_ended=True, is_last=is_sentence))
    return ToolRequest(tool, pieces, values)


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
