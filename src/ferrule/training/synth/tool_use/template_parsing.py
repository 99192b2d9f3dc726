"""Parses files of tool templates, and reports each problem with its file and line."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ferrule.training.synth.grammar import Problem
from ferrule.training.synth.tool_use.phrasing_parsing import parse_result, parse_tool_phrasing
from ferrule.training.synth.tool_use.templates import (
    DrawnPart,
    ResultTemplate,
    TemplateParameter,
    TemplateSlot,
    ToolPhrasing,
    ToolTemplate,
    find_parameters,
    find_slot_names,
)
from ferrule.training.synth.tool_use.type_parsing import NAME, parse_parameter

_HEADER = re.compile(r"([A-Za-z]\w*)\s*:\s*(.*)\Z")
# Each stands once in a head; a second `name:` is a parameter of that name.
_ONCE = ("domain", "name", "about")


@dataclass(slots=True)
class _Draft:
    """A tool while its lines are being read: each line with its number."""

    line: int
    section: str
    once: dict[str, tuple[int, str]] = field(default_factory=dict)
    parameters: list[tuple[int, str, str]] = field(default_factory=list)
    results: list[tuple[int, str]] = field(default_factory=list)
    errors: list[tuple[int, str]] = field(default_factory=list)
    phrasings: list[tuple[int, str]] = field(default_factory=list)
    in_phrasings: bool = False


def parse_tool_templates(texts: Mapping[str, str]) -> tuple[list[ToolTemplate], list[Problem]]:
    """The tools of template files given as texts by name, and every problem in them.

    A tool with a problem in its head is omitted, a phrasing or result with a problem is omitted alone.
    """
    tools: list[ToolTemplate] = []
    problems: list[Problem] = []
    for file, text in texts.items():
        for draft in _read_drafts(file, text, problems):
            tool = _FileCheck(file, problems).build(draft)
            if tool is not None:
                tools.append(tool)
    return tools, problems


def _read_drafts(file: str, text: str, problems: list[Problem]) -> list[_Draft]:
    drafts: list[_Draft] = []
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if not line or line.startswith("#"):
            continue
        if line.startswith("=="):
            drafts.append(_Draft(number, line[2:].strip()))
        elif not drafts:
            problems.append(Problem(file, number, "no part of a tool: a tool begins with a line '== name'"))
        elif drafts[-1].in_phrasings:
            drafts[-1].phrasings.append((number, line))
        elif line == "---":
            drafts[-1].in_phrasings = True
        else:
            reason = _read_head_line(drafts[-1], number, line)
            if reason:
                problems.append(Problem(file, number, reason))
    return drafts


def _read_head_line(draft: _Draft, number: int, line: str) -> str | None:
    header = _HEADER.match(line)
    if header is None:
        return "neither 'name: value' nor the '---' that ends a tool's head"
    name, value = header[1], header[2]
    if name in _ONCE and name not in draft.once:
        draft.once[name] = (number, value)
    elif name == "result":
        draft.results.append((number, value))
    elif name == "error":
        draft.errors.append((number, value))
    else:
        draft.parameters.append((number, name, value))
    return None


class _FileCheck:
    """Builds the tools of one file and collects what is wrong with them."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self._file, self._problems = file, problems

    def _report(self, line: int, reason: str) -> None:
        self._problems.append(Problem(self._file, line, reason))

    def build(self, draft: _Draft) -> ToolTemplate | None:
        before = len(self._problems)
        for header in _ONCE:
            if not draft.once.get(header, (0, ""))[1]:
                self._report(draft.line, f"tool {draft.section!r} has no '{header}:'")
        names = self._split_names(draft)
        parameters = self._read_parameters(draft)
        if len(self._problems) > before:
            return None
        by_name = {parameter.name: parameter for parameter in parameters}
        results = tuple(self._read_results(draft.results, by_name))
        errors = tuple(self._read_results(draft.errors, by_name))
        phrasings = tuple(self._read_phrasings(draft, by_name))
        if not results:
            self._report(draft.line, f"tool {draft.section!r} has no usable 'result:'")
        if all(phrasing.is_incomplete for phrasing in phrasings):
            self._report(draft.line, f"tool {draft.section!r} has no usable phrasing with all required arguments")
        if not results or not phrasings:
            return None
        return ToolTemplate(
            file=self._file,
            line=draft.line,
            section=draft.section,
            domain=draft.once["domain"][1],
            names=names,
            abouts=_split(draft.once["about"][1]),
            # As in a Python signature: what is required comes first.
            parameters=tuple(sorted(parameters, key=lambda parameter: not parameter.required)),
            results=results,
            errors=errors,
            phrasings=phrasings,
        )

    def _split_names(self, draft: _Draft) -> tuple[str, ...]:
        line, text = draft.once.get("name", (draft.line, ""))
        names = _split(text)
        for name in names:
            if not NAME.match(name):
                self._report(line, f"{name!r} is no name of a tool: letters, digits and _ only")
        return names

    def _read_parameters(self, draft: _Draft) -> list[TemplateParameter]:
        found: list[TemplateParameter] = []
        for line, name, text in draft.parameters:
            try:
                parameter = parse_parameter(name, text)
            except ValueError as error:
                self._report(line, str(error))
                continue
            if any(name == other.name for other in found):
                self._report(line, f"parameter {name!r} stands twice")
            found.append(parameter)
        return found

    def _read_results(
        self, lines: list[tuple[int, str]], parameters: Mapping[str, TemplateParameter]
    ) -> list[ResultTemplate]:
        found = []
        for line, text in lines:
            try:
                result = parse_result(text, line, parameters)
                _check_json(result, parameters)
            except ValueError as error:
                self._report(line, str(error))
            else:
                found.append(result)
        return found

    def _read_phrasings(self, draft: _Draft, parameters: Mapping[str, TemplateParameter]) -> list[ToolPhrasing]:
        found = []
        for line, text in draft.phrasings:
            try:
                phrasing = parse_tool_phrasing(text, line, parameters)
                _check_phrasing(phrasing, parameters)
            except ValueError as error:
                self._report(line, str(error))
            else:
                found.append(phrasing)
        return found


def _split(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split("|") if entry.strip())


def _check_phrasing(phrasing: ToolPhrasing, parameters: Mapping[str, TemplateParameter]) -> None:
    required = {name for name, parameter in parameters.items() if parameter.required}
    missing = sorted(required - find_parameters(phrasing.node, certain=True))
    if missing and not phrasing.is_incomplete:
        names = ", ".join(f"{{{name}}}" for name in missing)
        raise ValueError(f"{names}: required, but not always in this line (begin it with ? if the answer is to ask)")
    if phrasing.is_incomplete and not required - find_parameters(phrasing.node):
        raise ValueError("begins with ?, but lacks no required argument")
    for name in sorted(find_slot_names(phrasing.node)):
        reason = _find_value_problem(parameters[name])
        if reason:
            raise ValueError(f"{{{name}}}: {reason}")


def _find_value_problem(parameter: TemplateParameter) -> str | None:
    """Why no value of a parameter can be drawn and written."""
    if parameter.is_drawable:
        return None
    if parameter.type.scalar == "bool":
        return f"a bool is said in words: {{{parameter.name}=True: words}}"
    if parameter.type.scalar == "str":
        return "the parameter needs a source to be drawn from: str from city"
    return "the parameter needs a range to be drawn from: int 1..14"


def _check_json(result: ResultTemplate, parameters: Mapping[str, TemplateParameter]) -> None:
    """Fill a JSON result with samples, which must give JSON. Raises ValueError."""
    if not result.is_json:
        return
    text = ""
    for part in result.parts:
        if isinstance(part, str):
            text += part
        else:
            is_quoted = text.count('"') % 2 == 1
            text += "1" if is_quoted or _is_bare_json(part, parameters) else "unquoted"
    try:
        json.loads(text)
    except ValueError as error:
        raise ValueError(f"no JSON when filled ({text}): {error}; texts stand in double quotes") from error


def _is_bare_json(part: DrawnPart | TemplateSlot, parameters: Mapping[str, TemplateParameter]) -> bool:
    """Whether a part that isn't in quotes is written as JSON: a value of an argument always is."""
    if isinstance(part, TemplateSlot):
        return part.parameter in parameters
    return part.kind in ("int", "float", "bool") or all(_is_json(option) for option in part.options)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
