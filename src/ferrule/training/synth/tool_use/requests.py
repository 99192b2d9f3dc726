"""Draws what a user asks of one tool: a phrasing of its template with values, and what the call then is."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ferrule.embedded.missing import split_name
from ferrule.training.synth.noise import Piece, add_noise
from ferrule.training.synth.tool_use.arguments import draw_value, say_value
from ferrule.training.synth.tool_use.offers import OfferedTool
from ferrule.training.synth.tool_use.templates import (
    TemplateParameter,
    TemplateSetting,
    TemplateSlot,
    ToolPhrasing,
    Value,
    expand_phrasing,
)
from ferrule.training.synth.wheel import pick

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
