"""The calls that a notation writes, as grammars.

A notation declares no grammar: it writes calls with recognisable values, and what surrounds these is what every call
has. Characters that Unicode leaves to private use stand for the values, and for the markers in the text between them,
so that texts can be compared and no comparison cuts a marker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from typing import Any, Protocol, runtime_checkable

from ferrule.conversation import ToolCall
from ferrule.dialects.call_grammar import list_arguments
from ferrule.dialects.grammar import (
    NOTHING,
    CharacterSet,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    JsonValue,
    LiteralText,
    MarkerText,
    Repetition,
    TextUntil,
)
from ferrule.dialects.notation import TextNotation
from ferrule.dialects.notations.pythonic import write_literal
from ferrule.dialects.value_terms import (
    OwnValueSyntax,
    PlainTextSyntax,
    SectionedTextSyntax,
    ValueStyle,
    join_options,
    list_strings,
    list_types,
    select_types,
)
from ferrule.errors import DialectError
from ferrule.toolspec import JSONSchema, ToolSpec

_ID = "call73519"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_LONGEST_ID = 64
_FIRST_MARKER, _FIRST_PLACE, _LAST = 0xF0000, 0x100000, 0x10FFFD
_KEYS = ("\U00100001", "\U00100002")
_TEXT, _OTHER_TEXT, _PLACE_OF_ID = "\U00100003", "\U00100004", "\U00100005"
_PRIVATE = re.compile(f"[{chr(_FIRST_MARKER)}-{chr(_LAST)}]")
_NUMBER, _OTHER_NUMBER = 73401, 73402
_SAMPLES: Mapping[str, Any] = {
    "string": _TEXT,
    "integer": _NUMBER,
    "number": _NUMBER,
    "boolean": True,
    "null": None,
    "array": ["a", True],
    "object": {"a": True},
}


@runtime_checkable
class IdentifyingSyntax(Protocol):
    """A syntax whose ids have a form of their own."""

    def describe_id(self, name: str) -> tuple[str, Grammar] | None:
        """(the id of a call of the tool with this name, what else it can be); None for ids of any form."""
        ...


@dataclass(frozen=True, slots=True)
class _Frame:
    """What all calls of a tool have around and between their arguments."""

    before: str
    between: str
    after: str

    def cut(self, before: str, after: str) -> tuple[str, str]:
        """What belongs to the only argument of a call, of the text before and after its value."""
        if not (before.startswith(self.before) and after.endswith(self.after)):
            raise DialectError("its arguments are written differently in different calls")
        return before.removeprefix(self.before), after.removesuffix(self.after)


class CallWriter:
    """Describes the calls of tools in one notation, where these `tools` are offered."""

    def __init__(self, notation: TextNotation, tools: Sequence[ToolSpec]) -> None:
        family = notation.family
        self._notation, self._tools = notation, tools
        self._syntax = family.syntax if family.select_for_tools is None else family.select_for_tools(tools)[0]
        names = sorted(filter(None, notation.markers), key=len, reverse=True)
        self._marks = {name: chr(_FIRST_MARKER + at) for at, name in enumerate(names)}
        self._names = {mark: name for name, mark in self._marks.items()}
        self._pattern = re.compile("|".join(map(re.escape, names)) if names else "(?!)")

    def describe(self, spec: ToolSpec) -> Grammar:
        """All calls of a tool that fit its schema. Raises `DialectError`, naming the tool, for one that the notation
        can't express."""
        try:
            self._check(spec)
            return self._describe(spec)
        except DialectError as error:
            raise DialectError(
                f"calls of {spec.name!r} can't be described in the {self._notation.name} notation: {error}"
            ) from error

    def _describe(self, spec: ToolSpec) -> Grammar:
        if self._notation.family.one_tool is not None:
            return self._describe_only_tool(spec)
        sample = self._write(spec, {_KEYS[0]: 0})
        span = _find_object(sample)
        if span is not None:
            places = {_TEXT: JsonValue(spec.parameters)}
            return self._render(spec, f"{sample[: span[0]]}{_TEXT}{sample[span[1] :]}", places)
        return self._describe_arguments(spec) if _KEYS[0] in sample else self._describe_values(spec)

    def _check(self, spec: ToolSpec) -> None:
        """Raise `DialectError` for names that the notation can't write."""
        properties = _get_properties(spec)
        for name in (spec.name, *properties):
            if self._pattern.search(name):
                raise DialectError(f"the name {name!r} holds one of its markers")
        given = {key: _choose_value(schema, spec.parameters) for key, schema in properties.items()}
        if self._notation.family.one_tool is None:
            self._notation.calls((ToolCall(_ID, spec.name, json.dumps(given)),), self._tools)

    # Writing and comparing.

    def _write(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
        """A call with these arguments; its markers and its id are characters for private use."""
        identifier, _ = self._get_id(spec)
        text = self._syntax.write((ToolCall(identifier, spec.name, json.dumps(arguments, ensure_ascii=False)),))
        return self._mask(text.replace(identifier, _PLACE_OF_ID))

    def _get_id(self, spec: ToolSpec) -> tuple[str, Grammar]:
        found = self._syntax.describe_id(spec.name) if isinstance(self._syntax, IdentifyingSyntax) else None
        return found or (_ID, Repetition(CharacterSet(f"{_LETTERS}_-"), 1, _LONGEST_ID))

    def _mask(self, text: str) -> str:
        return self._pattern.sub(lambda found: self._marks[found.group()], text)

    def _unmask(self, text: str) -> str:
        return _PRIVATE.sub(lambda found: self._names.get(found.group(), found.group()), text)

    def _render(self, spec: ToolSpec, text: str, places: Mapping[str, Grammar]) -> Grammar:
        """A written text as a grammar, with what stands in its places."""
        found = {**places, _PLACE_OF_ID: self._get_id(spec)[1]}
        items: list[Grammar] = []
        at = 0
        for private in _PRIVATE.finditer(text):
            if private.start() > at:
                items.append(LiteralText(text[at : private.start()]))
            character = private.group()
            items.append(MarkerText(self._names[character]) if character in self._names else found[character])
            at = private.end()
        if at < len(text):
            items.append(LiteralText(text[at:]))
        return items[0] if len(items) == 1 else GrammarSequence(tuple(items))

    # Arguments by their names.

    def _describe_arguments(self, spec: ToolSpec) -> Grammar:
        properties, required = _get_properties(spec), set(spec.parameters.get("required") or ())
        frame = self._find_frame(spec)
        names = self._sort(spec, list(properties))
        arguments = [self._describe_argument(spec, frame, name, properties[name]) for name in names]
        listed = list_arguments(
            arguments, [name not in required for name in names], self._render(spec, frame.between, {})
        )
        before, after = self._render(spec, frame.before, {}), self._render(spec, frame.after, {})
        if required.intersection(names):
            return GrammarSequence((before, listed, after))
        empty = self._render(spec, self._write(spec, {}), {})
        options = listed.options[:-1] if isinstance(listed, GrammarChoice) else ()
        filled = [GrammarSequence((before, GrammarChoice(options), after))] if options else []
        return join_options([*filled, empty])

    def _find_frame(self, spec: ToolSpec) -> _Frame:
        key, other = _KEYS
        one = self._write(spec, {key: _NUMBER})
        two = self._write(spec, {key: _NUMBER, other: _OTHER_NUMBER})
        before, _, after = one.rpartition(str(_NUMBER))
        head, _, attributes = before.partition(key)
        # The key may be in a closer, too.
        end = f"{other}{attributes}{_OTHER_NUMBER}{after.replace(key, other)}"
        middle = two.removeprefix(f"{before}{_NUMBER}").removesuffix(end)
        # Both the next argument and the end of the call may begin with a bracket, but an argument doesn't end in one.
        closing = commonprefix((middle, after)).rstrip("<")
        opening = commonprefix((middle[len(closing) :][::-1], head[::-1]))[::-1]
        between = middle[len(closing) : len(middle) - len(opening)]
        return _Frame(head.removesuffix(opening), between, after.removeprefix(closing))

    def _sort(self, spec: ToolSpec, names: Sequence[str]) -> list[str]:
        """The names in the order in which a call writes them."""
        numbers = {name: _NUMBER + at for at, name in enumerate(names)}
        text = self._write(spec, numbers)
        return sorted(names, key=lambda name: text.rfind(str(numbers[name])))

    def _describe_argument(self, spec: ToolSpec, frame: _Frame, name: str, schema: Any) -> Grammar:
        root, syntax = spec.parameters, self._syntax
        if isinstance(syntax, OwnValueSyntax):
            around = frame.cut(*self._find_value(spec, name, "integer"))
            return self._render(spec, f"{around[0]}{_TEXT}{around[1]}", {_TEXT: syntax.describe_value(schema, root)})
        style = self._get_style(spec)
        types_by_context: dict[tuple[str, str], set[str]] = {}
        for kind in sorted(list_types(schema, root)):
            around = frame.cut(*self._find_value(spec, name, kind))
            types_by_context.setdefault(around, set()).add(kind)
        options = []
        for (before, after), types in types_by_context.items():
            value = style.describe(schema, root, types, self._make_text_writer(spec, name))
            options.append(self._render(spec, f"{before}{_TEXT}{after}", {_TEXT: value}))
        return join_options(options)

    def _make_text_writer(self, spec: ToolSpec, name: str) -> Callable[[str], str]:
        before, after = self._find_value(spec, name, "string")

        def write(value: str) -> str:
            written = self._write(spec, {name: value})
            if not (written.startswith(before) and written.endswith(after)):
                raise DialectError(f"{value!r} is written differently from other values of {name!r}")
            return self._unmask(written[len(before) : len(written) - len(after)])

        return write

    def _find_value(self, spec: ToolSpec, name: str, kind: str) -> tuple[str, str]:
        """The text before and after the value of a call's only argument."""
        text = self._write(spec, {name: _SAMPLES[kind]})
        start, end, _ = self._find_sample(text, _SAMPLES[kind])
        return text[:start], text[end:]

    def _find_sample(self, text: str, value: Any) -> tuple[int, int, bool]:
        """(where a value begins and ends in a written call, whether it is a Python literal)."""
        literals = [json.dumps(value, ensure_ascii=False), write_literal(value), repr(value)]
        ways = [(literal, at > 0) for at, literal in enumerate(literals)]
        if isinstance(value, str):
            ways = [(f'"{value}"', False), (f"'{value}'", True), (value, False)]
        for literal, is_python in ways:
            start = text.rfind(literal)
            if start >= 0:
                return start, start + len(literal), is_python
        raise DialectError(f"{value!r} is written in a way of its own")

    def _get_style(self, spec: ToolSpec) -> ValueStyle:
        """How values are written in a call of this tool."""
        syntax = self._syntax
        python = {
            kind: self._find_sample(self._write(spec, {_KEYS[0]: _SAMPLES[kind]}), _SAMPLES[kind])[2]
            for kind in ("boolean", "object")
        }
        text = self._write(spec, {_KEYS[0]: _TEXT})
        start, end, _ = self._find_sample(text, _TEXT)
        return ValueStyle(
            is_plain=end - start == len(_TEXT),
            has_python_scalars=python["boolean"],
            has_python_structures=python["object"],
            ends=syntax.list_value_ends(list(_get_properties(spec))) if isinstance(syntax, PlainTextSyntax) else (),
            section=syntax.text_section if isinstance(syntax, SectionedTextSyntax) else None,
        )

    # Other calls.

    def _describe_values(self, spec: ToolSpec) -> Grammar:
        """A call without names: its values are in the order of the schema, and only the last ones may be left out."""
        properties, root = _get_properties(spec), spec.parameters
        required = set(root.get("required") or ())
        key, other = _KEYS
        one, two = self._write(spec, {key: _NUMBER}), self._write(spec, {key: _NUMBER, other: _OTHER_NUMBER})
        before, _, after = one.partition(str(_NUMBER))
        between = two.removeprefix(f"{before}{_NUMBER}").removesuffix(f"{_OTHER_NUMBER}{after}")
        values: list[Grammar] = [
            JsonValue(select_types(one, root, list_types(one, root))) for one in properties.values()
        ]
        if len(values) == 1 and "array" in list_types(next(iter(properties.values())), root):
            before, after = before.rpartition("[")[0], after.partition("]")[2]
        last = max((at for at, name in enumerate(properties) if name in required), default=-1)
        rest: Grammar = NOTHING
        separator = self._render(spec, between, {})
        for at in range(len(values) - 1, 0, -1):
            following = GrammarSequence((separator, values[at], rest))
            rest = following if at <= last else GrammarChoice((following, NOTHING))
        options = (
            [self._render(spec, f"{before}{_TEXT}{after}", {_TEXT: GrammarSequence((values[0], rest))})]
            if values
            else []
        )
        return join_options([*options, *([self._render(spec, self._write(spec, {}), {})] if last < 0 else [])])

    def _describe_only_tool(self, spec: ToolSpec) -> Grammar:
        """A call of the only tool of a notation, which consists of one text."""
        syntax = self._syntax
        tool, parameter = self._notation.family.one_tool or ("", "")
        others = set(spec.parameters.get("required") or ()) - {parameter}
        if spec.name != tool or others:
            raise DialectError(f"it only has calls of {tool!r} with {parameter!r}")
        if isinstance(syntax, OwnValueSyntax):
            value = syntax.describe_value(_get_properties(spec).get(parameter), spec.parameters)
        else:
            value = TextUntil(syntax.list_value_ends((parameter,)) if isinstance(syntax, PlainTextSyntax) else ())
        return self._render(spec, self._write(spec, {parameter: _TEXT}), {_TEXT: value})


def _get_properties(spec: ToolSpec) -> Mapping[str, Any]:
    properties = spec.parameters.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _find_object(text: str) -> tuple[int, int] | None:
    """Where the arguments begin and end in a call that was written with a number under the first key; None if they are
    not a JSON object."""
    at = text.find(f'"{_KEYS[0]}"')
    start = text.rfind("{", 0, at) if at >= 0 else -1
    try:
        found, end = json.JSONDecoder().raw_decode(text, start) if start >= 0 else (None, 0)
    except ValueError:
        return None
    return (start, end) if found == {_KEYS[0]: 0} else None


def _choose_value(schema: Any, root: JSONSchema) -> Any:
    """A value of a type that the schema allows, as simple as possible."""
    types = list_types(schema, root)
    if "string" in types:
        return next(iter(list_strings(schema, root)), "text")
    values: Mapping[str, Any] = {"integer": 1, "number": 1, "boolean": True, "null": None, "array": [], "object": {}}
    return next(value for kind, value in values.items() if kind in types)
