"""Parses the phrasings and the results of a tool template."""

import re
from collections.abc import Mapping

from ferrule.training.synth.tool_use.templates import (
    Alternatives,
    DrawnPart,
    Node,
    ResultTemplate,
    TemplateParameter,
    TemplateSetting,
    TemplateSlot,
    ToolPhrasing,
)
from ferrule.training.synth.tool_use.type_parsing import SOURCES, parse_range, parse_value

_SLOT = re.compile(r"\{([A-Za-z]\w*)\}")
_SETTING = re.compile(r"\{([A-Za-z]\w*)\s*=\s*")
_PART = re.compile(r"<([^<>]+)>|\{([A-Za-z]\w*)\}")
_NUMBER = re.compile(r"(int|float)\s+(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)\Z")


def parse_tool_phrasing(text: str, line: int, parameters: Mapping[str, TemplateParameter]) -> ToolPhrasing:
    """The phrasing on one line; `?` before it marks one that lacks an argument. Raises ValueError with the reason."""
    is_incomplete = text.startswith("?")
    parser = _PhrasingParser(text[1:].strip() if is_incomplete else text, parameters)
    return ToolPhrasing(line, text, parser.parse(), is_incomplete)


class _PhrasingParser:
    """A recursive parser: it has read `text` up to `at`."""

    def __init__(self, text: str, parameters: Mapping[str, TemplateParameter]) -> None:
        self.text, self.parameters, self.at = text, parameters, 0

    def parse(self) -> Node:
        node = self._parse_sequence("")
        if self.at < len(self.text):
            char = self.text[self.at]
            raise ValueError(f"unexpected {char!r} at column {self.at + 1} (write \\{char} for the character)")
        return node

    def _parse_sequence(self, closers: str) -> Node:
        items: list[str | TemplateSlot | TemplateSetting | Alternatives] = []
        literal = ""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in closers or char in ")|}":
                break
            if char == "\\" and self.at + 1 < len(self.text):
                literal += self.text[self.at + 1]
                self.at += 2
            elif char in "({":
                if literal:
                    items.append(literal)
                    literal = ""
                items += self._parse_group() if char == "(" else [self._parse_brace()]
            elif char in "[]":
                raise ValueError(
                    f"{char!r} at column {self.at + 1}: optional words are (words|); write \\{char} for it"
                )
            else:
                literal += char
                self.at += 1
        return (*items, literal) if literal else tuple(items)

    def _parse_group(self) -> list[str | TemplateSlot | TemplateSetting | Alternatives]:
        """A choice; without a `|` the parentheses are text, such as `({minutes} min)`."""
        start = self.at
        nodes: list[Node] = []
        while self.at == start or self.text[self.at : self.at + 1] == "|":
            self.at += 1
            nodes.append(self._parse_sequence(")|"))
        if self.text[self.at : self.at + 1] != ")":
            raise ValueError(f"the '(' at column {start + 1} is not closed by ')'")
        self.at += 1
        return [Alternatives(tuple(nodes))] if len(nodes) > 1 else ["(", *nodes[0], ")"]

    def _parse_brace(self) -> TemplateSlot | TemplateSetting:
        start = self.at
        slot = _SLOT.match(self.text, start)
        if slot:
            self.at = slot.end()
            self._find_parameter(slot[1])
            return TemplateSlot(slot[1])
        setting = _SETTING.match(self.text, start)
        # The value ends at a colon and a space: a value may be a time such as 12:30.
        end = self.text.find(": ", setting.end()) if setting else -1
        if setting is None or end < 0:
            raise ValueError(f"the '{{' at column {start + 1} begins neither {{name}} nor {{name=VALUE: words}}")
        parameter = self._find_parameter(setting[1])
        value = parse_value(self.text[setting.end() : end].strip(), parameter.type)
        self.at = end + 2
        words = self._parse_sequence("}")
        if self.text[self.at : self.at + 1] != "}":
            raise ValueError(f"the '{{' at column {start + 1} is not closed by '}}'")
        self.at += 1
        if not words:
            raise ValueError(f"{{{setting[1]}=…}} at column {start + 1} has no words")
        return TemplateSetting(setting[1], value, words)

    def _find_parameter(self, name: str) -> TemplateParameter:
        if name not in self.parameters:
            raise ValueError(f"{{{name}}} is no parameter of this tool ({', '.join(self.parameters) or 'it has none'})")
        return self.parameters[name]


def parse_result(text: str, line: int, parameters: Mapping[str, TemplateParameter]) -> ResultTemplate:
    """A result: literal text with `<int 1..9>`, `<a; b>`, `<city>` and `{parameter}`. Raises ValueError."""
    parts: list[str | DrawnPart | TemplateSlot] = []
    end = 0
    for match in _PART.finditer(text):
        parts.append(text[end : match.start()])
        if match[2]:
            if match[2] not in parameters:
                raise ValueError(f"{{{match[2]}}} is no parameter of this tool")
            parts.append(TemplateSlot(match[2]))
        else:
            parts.append(_parse_drawn_part(match[1].strip()))
        end = match.end()
    parts.append(text[end:])
    kept = tuple(part for part in parts if part)
    return ResultTemplate(line, kept, text.startswith(("{", "[")) and not _SLOT.match(text))


def _parse_drawn_part(text: str) -> DrawnPart:
    number = _NUMBER.match(text)
    if number:
        low, high, decimals = parse_range(number[2], number[3], number[1])
        return DrawnPart("int" if number[1] == "int" else "float", low=low, high=high, decimals=decimals)
    if text == "bool":
        return DrawnPart("bool")
    if text in SOURCES:
        return DrawnPart("source", source=text)
    options = tuple(option.strip() for option in text.split(";"))
    if len(options) < 2:
        raise ValueError(f"<{text}> is neither a range <int 1..9>, nor <bool>, nor a source, nor a list <a; b>")
    return DrawnPart("options", options=options)
