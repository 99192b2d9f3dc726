"""The calls that a notation writes, as grammars.

A notation needn't declare them: it writes sample calls, and values are put in the place of the samples. What samples
can't tell, such as the texts that end a value without quotes, is said by a few small protocols.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ferrule.conversation import ToolCall
from ferrule.dialects.call_grammar import list_arguments
from ferrule.dialects.family import CallSyntax
from ferrule.dialects.grammar import (
    NOTHING,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    JsonValue,
    make_text_choice,
    note_unenforced,
)
from ferrule.dialects.notation import TextNotation
from ferrule.dialects.sample_calls import (
    KEYS,
    NUMBER,
    OTHER_NUMBER,
    PLACE,
    SAMPLE_ID,
    SAMPLES,
    Frame,
    SampleCalls,
    find_sample,
    get_properties,
)
from ferrule.dialects.schema_limits import find_lost_arguments, find_lost_text_keywords
from ferrule.dialects.value_terms import (
    OwnValueSyntax,
    PlainTextSyntax,
    SectionedTextSyntax,
    ValueStyle,
    join_options,
    list_strings,
    list_types,
    make_plain_text,
    make_text,
    select_types,
)
from ferrule.errors import DialectError
from ferrule.toolspec import JSONSchema, ToolSpec


def describe_calls(notation: TextNotation, tools: Sequence[ToolSpec], spec: ToolSpec) -> Grammar:
    """All calls of `spec` that fit its schema, where these tools are offered. Raises `DialectError`, naming the tool,
    for one that the notation can't express."""
    family = notation.family
    syntax = family.syntax if family.select_for_tools is None else family.select_for_tools(tools)[0]
    samples = SampleCalls(syntax, notation.markers, spec)
    try:
        samples.check_names()
        if family.one_tool is not None:
            return _describe_only_tool(syntax, samples, spec, family.one_tool)
        _check(notation, tools, spec)
        return _describe(syntax, samples, spec)
    except DialectError as error:
        raise DialectError(
            f"calls of {spec.name!r} can't be described in the {notation.name} notation: {error}"
        ) from error


def _check_required(spec: ToolSpec) -> None:
    """Raise `DialectError` for arguments that are required and not described."""
    missing = [name for name in spec.parameters.get("required") or () if name not in get_properties(spec)]
    if missing:
        raise DialectError(f"its schema requires {', '.join(missing)} without describing it")


def _check(notation: TextNotation, tools: Sequence[ToolSpec], spec: ToolSpec) -> None:
    """Raise `DialectError` for names that can't be read back as they are written."""
    given = {key: _choose_value(schema, spec.parameters) for key, schema in get_properties(spec).items()}
    notation.calls((ToolCall(SAMPLE_ID, spec.name, json.dumps(given)),), tools)


def _choose_value(schema: Any, root: JSONSchema) -> Any:
    """A value of a type that the schema allows, as simple as possible."""
    types = list_types(schema, root)
    if "string" in types:
        return next(iter(list_strings(schema, root)), "text")
    values: Mapping[str, Any] = {"integer": 1, "number": 1, "boolean": True, "null": None, "array": [], "object": {}}
    return next(value for kind, value in values.items() if kind in types)


def _describe(syntax: CallSyntax, samples: SampleCalls, spec: ToolSpec) -> Grammar:
    sample = samples.write({KEYS[0]: 0})
    span = _find_object(sample)
    if span is not None:
        whole = samples.describe(f"{sample[: span[0]]}{PLACE}{sample[span[1] :]}", JsonValue(spec.parameters))
        return join_options([whole, *_describe_plain_calls(syntax, samples, spec)])
    _check_required(spec)
    described = (_describe_arguments if KEYS[0] in sample else _describe_values)(syntax, samples, spec)
    required = set(spec.parameters.get("required") or ())
    return note_unenforced(described, find_lost_arguments(spec.parameters, len(required), len(get_properties(spec))))


def _describe_plain_calls(syntax: CallSyntax, samples: SampleCalls, spec: ToolSpec) -> Iterator[Grammar]:
    """Calls whose only argument is written as it is, in a notation that writes others as JSON."""
    if not isinstance(syntax, PlainTextSyntax):
        return
    required = set(spec.parameters.get("required") or ())
    for name, schema in get_properties(spec).items():
        if required <= {name} and "string" in list_types(schema, spec.parameters):
            text = samples.write({name: PLACE})
            if f'"{PLACE}"' not in text:
                choices = list_strings(schema, spec.parameters)
                plain = make_plain_text(schema, spec.parameters, syntax.list_value_ends(()), '{["')
                value = make_text_choice(choices) if choices else plain
                lost = find_lost_text_keywords(schema, spec.parameters)
                whole = samples.describe(text, GrammarSequence((value,), name, lost))
                yield note_unenforced(whole, find_lost_arguments(spec.parameters, 1, 1))


def _find_object(text: str) -> tuple[int, int] | None:
    """Where the arguments begin and end in a call with 0 under the first key; None if they are not a JSON object."""
    at = text.find(f'"{KEYS[0]}"')
    start = text.rfind("{", 0, at) if at >= 0 else -1
    try:
        found, end = json.JSONDecoder().raw_decode(text, start) if start >= 0 else (None, 0)
    except ValueError:
        return None
    return (start, end) if found == {KEYS[0]: 0} else None


def _describe_arguments(syntax: CallSyntax, samples: SampleCalls, spec: ToolSpec) -> Grammar:
    """A call with arguments by name, in the order in which it is written."""
    properties, required = get_properties(spec), set(spec.parameters.get("required") or ())
    frame = samples.find_frame()
    names = samples.sort_names()
    style = _find_style(syntax, samples, spec)
    arguments = [_describe_argument(syntax, samples, spec, frame, style, name) for name in names]
    listed = list_arguments(arguments, [name not in required for name in names], samples.describe(frame.between))
    before, after = samples.describe(frame.before), samples.describe(frame.after)
    if required.intersection(properties):
        return GrammarSequence((before, listed, after))
    # A call without arguments may have other white space.
    empty = samples.describe(samples.write({}))
    options = listed.options[:-1] if isinstance(listed, GrammarChoice) else ()
    return join_options([*([GrammarSequence((before, GrammarChoice(options), after))] if options else []), empty])


def _describe_argument(
    syntax: CallSyntax, samples: SampleCalls, spec: ToolSpec, frame: Frame, style: ValueStyle, name: str
) -> Grammar:
    root, schema = spec.parameters, get_properties(spec)[name]
    if isinstance(syntax, OwnValueSyntax):
        before, after = frame.cut(*samples.find_value(name, "integer"))
        value = GrammarSequence((syntax.describe_value(schema, root),), name)
        return samples.describe(f"{before}{PLACE}{after}", value)
    types_by_context: dict[tuple[str, str], set[str]] = {}
    for kind in sorted(list_types(schema, root)):
        types_by_context.setdefault(frame.cut(*samples.find_value(name, kind)), set()).add(kind)
    options = []
    for (before, after), types in types_by_context.items():
        value = GrammarSequence((style.describe(schema, root, types, partial(samples.write_text, name)),), name)
        options.append(samples.describe(f"{before}{PLACE}{after}", value))
    return join_options(options)


def _find_style(syntax: CallSyntax, samples: SampleCalls, spec: ToolSpec) -> ValueStyle:
    """How values are written in a call of this tool."""
    if isinstance(syntax, OwnValueSyntax):
        return ValueStyle()
    found = {
        kind: find_sample(samples.write({KEYS[0]: SAMPLES[kind]}), SAMPLES[kind])
        for kind in ("string", "boolean", "object")
    }
    start, end, _ = found["string"]
    return ValueStyle(
        is_plain=end - start == len(PLACE),
        has_python_scalars=found["boolean"][2],
        has_python_structures=found["object"][2],
        ends=syntax.list_value_ends(list(get_properties(spec))) if isinstance(syntax, PlainTextSyntax) else (),
        section=syntax.text_section if isinstance(syntax, SectionedTextSyntax) else None,
    )


def _describe_values(syntax: CallSyntax, samples: SampleCalls, spec: ToolSpec) -> Grammar:  # noqa: ARG001 - as above
    """A call without names: its values are in the order of the schema, and only the last ones may be left out."""
    properties, root = get_properties(spec), spec.parameters
    last = max((at for at, name in enumerate(properties) if name in (root.get("required") or ())), default=-1)
    empty = [samples.describe(samples.write({}))] if last < 0 else []
    if not properties:
        return join_options(empty)
    one, two = samples.write({KEYS[0]: NUMBER}), samples.write({KEYS[0]: NUMBER, KEYS[1]: OTHER_NUMBER})
    before, _, after = one.partition(str(NUMBER))
    separator = samples.describe(two.removeprefix(f"{before}{NUMBER}").removesuffix(f"{OTHER_NUMBER}{after}"))
    first, *others = (
        GrammarSequence((JsonValue(select_types(schema, root, list_types(schema, root))),), name)
        for name, schema in properties.items()
    )
    if not others and "array" in list_types(next(iter(properties.values())), root):
        # The list is the only value, and so takes the place of the list of values.
        before, after = before.rpartition("[")[0], after.partition("]")[2]
    rest: Grammar = NOTHING
    for at, value in reversed([*enumerate(others, 1)]):
        following = GrammarSequence((separator, value, rest))
        rest = following if at <= last else GrammarChoice((following, NOTHING))
    return join_options([samples.describe(f"{before}{PLACE}{after}", GrammarSequence((first, rest))), *empty])


def _describe_only_tool(syntax: CallSyntax, samples: SampleCalls, spec: ToolSpec, only: tuple[str, str]) -> Grammar:
    """A call of the only tool of a notation, which consists of one text."""
    tool, parameter = only
    if spec.name != tool or set(spec.parameters.get("required") or ()) - {parameter}:
        raise DialectError(f"it only has calls of {tool!r} with {parameter!r}")
    schema, root = get_properties(spec).get(parameter), spec.parameters
    if isinstance(syntax, OwnValueSyntax):
        value = syntax.describe_value(schema, root)
    else:
        ends = syntax.list_value_ends((parameter,)) if isinstance(syntax, PlainTextSyntax) else ()
        value = make_text(schema, root, ends)
    lost = find_lost_text_keywords(schema, root)
    whole = samples.describe(samples.write({parameter: PLACE}), GrammarSequence((value,), parameter, lost))
    return note_unenforced(whole, find_lost_arguments(root, 1, 1))
