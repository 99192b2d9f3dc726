"""A tool as it is offered in a conversation, and called: renamed, its parameters as JSON Schema.

Names are in snake_case, camelCase or PascalCase, some with a prefix or a suffix, some opaque.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ferrule._util.word_lists import show_list
from ferrule.embedded.missing import split_name
from ferrule.formats.nanochat import write_call
from ferrule.training.synth.tool_use.templates import TemplateParameter, ToolTemplate, Value
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import draw_pseudo_word

CALCULATOR = "calculator"
KEY = "key"
"""The parameter of an invented tool that is never offered by this name, only by its other names."""
_JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool of a conversation. `names` are the offered names of the template's parameters."""

    name: str
    description: str
    template: ToolTemplate
    names: dict[str, str]

    @property
    def characters(self) -> int:
        """About how long its line in the offer is."""
        signature = sum(len(self.names[p.name]) + _estimate_type(p) for p in self.template.parameters)
        return len(self.name) + 2 + signature + (4 + min(len(self.description), 120) if self.description else 0) + 1

    @property
    def required(self) -> tuple[TemplateParameter, ...]:
        """The parameters that a call can't do without."""
        return tuple(parameter for parameter in self.template.parameters if parameter.required)

    def to_json(self) -> dict[str, Any]:
        """Name, description and parameters, as in a training file."""
        properties = {self.names[p.name]: make_schema(p) for p in self.template.parameters}
        parameters: dict[str, Any] = {"type": "object", "properties": properties}
        required = [self.names[parameter.name] for parameter in self.required]
        if required:
            parameters["required"] = required
        return {"name": self.name, "description": self.description, "parameters": parameters}


def make_schema(parameter: TemplateParameter) -> dict[str, Any]:
    """The JSON Schema of a parameter; one that is None by default has no default there."""
    type_ = parameter.type
    schema: dict[str, Any] = {"type": _JSON_TYPES[type_.scalar]}
    if type_.options:
        schema["enum"] = list(type_.options)
    if type_.is_list:
        schema = {"type": "array", "items": schema}
    if parameter.default is not None:
        schema["default"] = parameter.default
    return schema


def _estimate_type(parameter: TemplateParameter) -> int:
    type_ = parameter.type
    length = sum(len(str(option)) + 5 for option in type_.options) if type_.options else len(type_.scalar)
    length += 6 if type_.is_list else 0
    return length + 4 + (0 if parameter.required else len(str(parameter.default)) + 3)


def draw_offered_tool(rng: random.Random, template: ToolTemplate) -> OfferedTool:
    """A tool of a template: one of its names in some style, one of its descriptions or none.

    An opaque name has a description, a tool without one a name that tells.
    """
    form = rng.random()
    description = pick(rng, template.abouts)
    if form < 0.07:
        name = draw_opaque_name(rng)
    else:
        name = style_name(rng, pick(rng, template.names))
        if form > 0.88:
            description = ""
        elif form > 0.8:
            description = description.rstrip(".")
        elif form > 0.77:
            description = description[:1].lower() + description[1:]
    camel = name[1:] != name[1:].lower()
    names: dict[str, str] = {}
    for parameter in template.parameters:
        choices = parameter.other_names if parameter.name == KEY else (parameter.name, *parameter.other_names)
        chosen = style_parameter(rng, choices[0] if rng.random() < 0.45 else pick(rng, choices), camel)
        names[parameter.name] = chosen if chosen not in names.values() else parameter.name
    if len(set(names.values())) < len(names):
        names = {parameter.name: parameter.name for parameter in template.parameters}
    return OfferedTool(name, description, template, names)


_PREFIXES = ("my_", "do_", "api_", "tool_", "app_", "user_", "x_", "fn_", "svc_", "v2_")
_SUFFIXES = ("_tool", "_v2", "_api", "_now", "_fn", "_2", "_action", "_command", "_service")


def style_name(rng: random.Random, name: str) -> str:
    """A tool's name in another style, at times with a prefix or a suffix."""
    form = rng.random()
    if form < 0.08:
        name = pick(rng, _PREFIXES) + _join_snake(name)
    elif form < 0.16:
        name = _join_snake(name) + pick(rng, _SUFFIXES)
    style = rng.random()
    if style < 0.6:
        return name
    if style < 0.75:
        return _join_snake(name)
    return join_camel(name, is_pascal=style > 0.93)


def style_parameter(rng: random.Random, name: str, camel: bool) -> str:
    """A parameter's name; a tool with `camel` names has camelCase for its parameters too."""
    return join_camel(name, is_pascal=False) if camel and rng.random() < 0.8 else name


def _join_snake(name: str) -> str:
    return split_name(name).replace(" ", "_")


def join_camel(name: str, *, is_pascal: bool) -> str:
    """`get_weather` as `getWeather`, or `GetWeather`."""
    words = split_name(name).split(" ")
    joined = "".join(word[:1].upper() + word[1:] for word in words)
    return joined if is_pascal else words[0] + joined[len(words[0]) :]


def draw_opaque_name(rng: random.Random) -> str:
    """A name that says nothing about what the tool does: `zx_tool`, `do_it2`, `api_v2_fetch`."""
    form = rng.random()
    if form < 0.3:
        return f"{draw_pseudo_word(rng)}_{pick(rng, ('tool', 'fn', 'run', 'call', 'op', 'api', 'job'))}"
    if form < 0.5:
        verb = pick(rng, ("do_it", "run", "call", "fetch", "execute", "process", "handle", "action"))
        return f"{verb}{1 + int(rng.random() * 9)}"
    if form < 0.7:
        end = pick(rng, ("fetch", "call", "post", "query", "do"))
        return f"{pick(rng, ('api', 'svc', 'sys', 'ext', 'int'))}_v{1 + int(rng.random() * 4)}_{end}"
    if form < 0.85:
        letters = "".join(pick(rng, "abcdefghijklmnopqrstuvwxyz") for _ in range(2 + int(rng.random() * 2)))
        return f"{letters}_{pick(rng, ('tool', 'x', 'main', 'step'))}"
    return join_camel(f"{draw_pseudo_word(rng)}_{draw_pseudo_word(rng)}", is_pascal=form > 0.93)


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A call of an offered tool. `arguments` are by the template's names; what keeps its default isn't in them."""

    tool: OfferedTool
    arguments: Mapping[str, Value]

    @property
    def text(self) -> str:
        """The call, its arguments in the order of the signature."""
        names = self.tool.names
        given = (p.name for p in self.tool.template.parameters if p.name in self.arguments)
        return write_call(self.tool.name, {names[name]: self.arguments[name] for name in given})

    def get_value(self, name: str) -> Value:
        """The value of a parameter, its default if the call leaves it out."""
        return self.arguments[name] if name in self.arguments else self.tool.template.get_parameter(name).default


def make_call(tool: OfferedTool, values: Mapping[str, Value]) -> ForeignCall:
    """The call with these values; those that equal the default are left out."""
    template = tool.template
    kept = {
        p.name: values[p.name]
        for p in template.parameters
        if p.name in values and (p.required or not _is_same(values[p.name], p.default))
    }
    return ForeignCall(tool, kept)


def _is_same(left: Value, right: Value) -> bool:
    return left == right and isinstance(left, bool) is isinstance(right, bool)


def show_value(value: Value) -> str:
    """A value as a reply says it: `Paris`, `yes`, `a, b and c`."""
    if isinstance(value, list):
        return show_list([show_value(entry) for entry in value])
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
