"""Parses template files into sections, and reports each problem with its file and line."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ferrule.training.synth.conditions import ConditionError, parse_condition
from ferrule.training.synth.grammar import (
    CALL_FORMS,
    KINDS,
    REPLY_FORMS,
    TEXT_SLOTS,
    Choice,
    Field,
    Fields,
    GrammarError,
    Node,
    Phrasing,
    Problem,
    Section,
    Slot,
    find_slots,
    strip_number,
)
from ferrule.training.synth.numbers import HintError, parse_hint

_HEADERS = frozenset(
    {"kind", "call", "second", "reply", "below", "equal", "opening", "opened", "offering", "where", "weight", "follow"}
)
RESULTS = frozenset({"r", "r2", "e", "prev"})
_HEADER = re.compile(r"([a-z][a-z0-9_]*)\s*:(.*)")
_LIST = re.compile(r"list ([a-z][a-z0-9_]*)\s*:(.*;.*)")
_SLOT_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_FIELD = re.compile(r"\{([a-z][a-z0-9_]*)(?::([a-z]+))?\}")


@dataclass(slots=True)
class _Draft:
    """A section while its lines are being read."""

    file: str
    line: int
    name: str
    headers: dict[str, tuple[int, str]] = field(default_factory=dict)
    in_phrasings: bool = False
    phrasings: list[Phrasing] = field(default_factory=list)


def parse_templates(texts: Mapping[str, str]) -> tuple[list[Section], list[Problem]]:
    """Sections of the template files given by name, and every problem in them.

    A section with a problem in its header is omitted; a phrasing with a problem is omitted alone.
    """
    sections: list[Section] = []
    problems: list[Problem] = []
    first_use: dict[str, Section] = {}
    for file, text in texts.items():
        reader = _FileReader(file, problems)
        for number, line in enumerate(map(str.strip, text.splitlines()), 1):
            if line and not line.startswith("#"):
                reader.read(number, line)
        for draft in reader.drafts:
            section = _finish(draft, reader.lists, problems)
            if section is None:
                continue
            if section.name in first_use:
                other = first_use[section.name]
                problems.append(Problem(file, section.line, f"section {section.name!r} is in {other.file} too"))
                continue
            first_use[section.name] = section
            sections.append(section)
    return sections, problems


class _FileReader:
    """Reads a file line by line into drafts of sections, collecting problems."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self._file = file
        self._problems = problems
        self.lists: dict[str, tuple[str, ...]] = {}
        self.drafts: list[_Draft] = []

    def read(self, number: int, line: str) -> None:
        """Read one line, stripped and not empty."""
        named_list = _LIST.match(line)
        if named_list:
            self.lists[named_list[1]] = tuple(entry.strip() for entry in named_list[2].split(";") if entry.strip())
        elif line.startswith("=="):
            self.drafts.append(_Draft(self._file, number, line[2:].strip()))
        elif not self.drafts:
            self._problems.append(Problem(self._file, number, "neither a list nor part of a section"))
        elif self.drafts[-1].in_phrasings:
            self._read_phrasing(number, line)
        else:
            self._read_header(number, line)

    def _read_phrasing(self, number: int, line: str) -> None:
        try:
            self.drafts[-1].phrasings.append(parse_phrasing(line, self._file, number))
        except ValueError as error:
            self._problems.append(Problem(self._file, number, str(error)))

    def _read_header(self, number: int, line: str) -> None:
        header = _HEADER.fullmatch(line)
        if line == "---":
            self.drafts[-1].in_phrasings = True
        elif header:
            self.drafts[-1].headers[header[1]] = (number, header[2].strip())
        else:
            reason = "neither 'name: value' nor the '---' that ends a section's head"
            self._problems.append(Problem(self._file, number, reason))


def _finish(draft: _Draft, lists: Mapping[str, tuple[str, ...]], problems: list[Problem]) -> Section | None:
    try:
        section = _build(draft, lists)
    except GrammarError as error:
        problems += error.problems
        return None
    kept = []
    needed = find_needed(section)
    if section.opening is not None:
        needed -= find_slots(section.opening.node, certain=True)
    for phrasing in section.phrasings:
        reason = _find_phrasing_problem(phrasing, section, needed)
        if reason:
            problems.append(Problem(draft.file, phrasing.line, reason))
        else:
            kept.append(phrasing)
    if not kept:
        problems.append(Problem(draft.file, draft.line, f"section {draft.name!r} has no usable phrasing"))
        return None
    return replace(section, phrasings=tuple(kept))


def _build(draft: _Draft, lists: Mapping[str, tuple[str, ...]]) -> Section:
    line = draft.line

    def read_value(name: str) -> str | None:
        nonlocal line
        line, text = draft.headers.get(name, (draft.line, None))
        return text

    try:
        kind = read_value("kind") or ""
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}; expected one of {', '.join(KINDS)}")
        call_text, reply_text = read_value("call"), read_value("reply")
        if not reply_text:
            raise ValueError(f"section {draft.name!r} has no reply")
        reply = parse_fields(reply_text, REPLY_FORMS)
        if call_text is None and any(isinstance(piece, Field) and piece.name in "re" for piece in reply):
            raise ValueError("the reply uses a result, but there is no call")
        calls = _read_fields(read_value, ("call", "second"), CALL_FORMS)
        others = _read_fields(read_value, ("below", "equal"), REPLY_FORMS)
        opening_text, opened = read_value("opening"), read_value("opened") or ""
        if (opening_text is None) is not (opened == ""):
            raise ValueError("opening and opened stand together: a turn before, and the reply to it")
        offering = read_value("offering")
        opening = parse_phrasing(opening_text, draft.file, line) if opening_text else None
        where_text = read_value("where")
        where = parse_condition(where_text) if where_text else None
        weight = float(read_value("weight") or 1)
        follow = {"true": True, "false": False}[read_value("follow") or "false"]
        hints = {}
        for name in draft.headers.keys() - _HEADERS:
            hints[name] = parse_hint(read_value(name) or "")
    except (ValueError, HintError, ConditionError, KeyError) as error:
        raise GrammarError([Problem(draft.file, line, str(error))]) from error
    return Section(
        draft.file, draft.line, draft.name, kind, calls["call"], reply, hints, where, weight, follow,
        tuple(draft.phrasings), lists, calls["second"], others["below"], others["equal"], opening, opened, offering,
    )  # fmt: skip


def _read_fields(
    read_value: Callable[[str], str | None], names: tuple[str, str], forms: tuple[str, ...]
) -> dict[str, Fields | None]:
    texts = {name: read_value(name) for name in names}
    return {name: parse_fields(text, forms) if text else None for name, text in texts.items()}


def find_needed(section: Section) -> set[str]:
    """The slots that a section's calls and replies use."""
    fields = (section.call, section.second, section.reply, section.below, section.equal)
    return {piece.name for pieces in fields for piece in pieces or () if isinstance(piece, Field)} - RESULTS


def _find_phrasing_problem(phrasing: Phrasing, section: Section, needed: set[str]) -> str | None:
    for name in sorted(find_slots(phrasing.node) | needed):
        base = strip_number(name)
        known = base in TEXT_SLOTS or len(base) == 1 or name in section.hints or name in section.lists
        if not known and not (name == "prev" and section.follow):
            return f"slot {{{name}}} is neither a number, nor built in, nor a list of this file"
    missing = needed - find_slots(phrasing.node, certain=True)
    if missing:
        names = ", ".join(f"{{{name}}}" for name in sorted(missing))
        return f"{names}: in the call or the reply of section {section.name!r}, but not always in this phrasing"
    return None


def parse_phrasing(text: str, file: str, line: int) -> Phrasing:
    """The phrasing on one line.

    Raises ValueError with the reason if a bracket or a slot is malformed.
    """
    node, end = _parse_sequence(text, 0, "")
    if end != len(text):
        raise ValueError(f"unexpected {text[end]!r} at column {end + 1} (write \\{text[end]} for the character)")
    return Phrasing(file, line, text, node, _count_expansions(node))


def _parse_sequence(text: str, at: int, closer: str) -> tuple[Node, int]:
    items: list[str | Slot | Choice] = []
    literal = ""
    while at < len(text):
        char = text[at]
        if char in ")]|" and (closer or char != "|"):
            break
        if char == "\\" and at + 1 < len(text):
            literal += text[at + 1]
            at += 2
        elif char in "([{":
            if literal:
                items.append(literal)
                literal = ""
            item, at = _parse_slot(text, at) if char == "{" else _parse_group(text, at)
            items.append(item)
        elif char in "}|":
            raise ValueError(f"unexpected {char!r} at column {at + 1} (write \\{char} for the character)")
        else:
            literal += char
            at += 1
    if literal:
        items.append(literal)
    return tuple(items), at


def _parse_group(text: str, start: int) -> tuple[Choice, int]:
    closer = ")" if text[start] == "(" else "]"
    alternatives: list[Node] = [()] if closer == "]" else []
    at = start
    while at < len(text) and (at == start or text[at] == "|"):
        node, at = _parse_sequence(text, at + 1, closer)
        alternatives.append(node)
    if at >= len(text) or text[at] != closer:
        raise ValueError(f"the {text[start]!r} at column {start + 1} is not closed by {closer!r}")
    return Choice(tuple(alternatives)), at + 1


def _parse_slot(text: str, start: int) -> tuple[Slot, int]:
    end = text.find("}", start)
    name = text[start + 1 : end]
    if end < 0 or not _SLOT_NAME.match(name):
        raise ValueError(f"no slot name in lower case follows the '{{' at column {start + 1}")
    return Slot(name, strip_number(name)), end + 1


def _count_expansions(node: Node) -> int:
    return math.prod(sum(map(_count_expansions, item.alternatives)) for item in node if isinstance(item, Choice))


def parse_fields(text: str, forms: tuple[str, ...]) -> Fields:
    """A call or a reply, split at its slots, whose formats are of `forms`.

    Raises ValueError for a brace that doesn't belong to a slot, and for another format.
    """
    pieces: list[str | Field] = []
    end = 0
    for match in _FIELD.finditer(text):
        pieces += [text[end : match.start()], Field(match[1], match[2] or "")]
        end = match.end()
    pieces.append(text[end:])
    kept = tuple(piece for piece in pieces if piece)
    if any(isinstance(piece, str) and ("{" in piece or "}" in piece) for piece in kept):
        raise ValueError("a brace doesn't belong to a slot")
    if any(isinstance(piece, Field) and piece.form not in forms for piece in kept):
        raise ValueError(f"the formats of a slot are here {', '.join(f':{form}' for form in forms if form)}")
    return kept
