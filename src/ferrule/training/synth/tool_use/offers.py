"""A tool as it is offered in a conversation: renamed, its description chosen, its parameters as JSON Schema."""

import random
from dataclasses import dataclass
from typing import Any

from ferrule.training.synth.tool_use.naming import draw_opaque_name, style_name, style_parameter
from ferrule.training.synth.tool_use.templates import TemplateParameter, ToolTemplate
from ferrule.training.synth.wheel import pick

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
