"""A call as the model writes it: `get_weather(city="Paris", days=2)`."""

from collections.abc import Mapping
from dataclasses import dataclass

from ferrule._util.word_lists import show_list
from ferrule.formats.nanochat import write_call
from ferrule.training.synth.tool_use.offers import OfferedTool
from ferrule.training.synth.tool_use.templates import Value


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
