"""Parses a function's docstring: the paragraphs before its parameters, and a text for each parameter.

Google, NumPy and Sphinx styles. The parameters are parsed by griffe, which is imported only if there are sections; what
people write a little differently, such as `x (int) : text` or `:param x : text`, is read here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

_SECTION = re.compile(r"^[ \t]*(:\w+.*:|[A-Z][\w ]*:[ \t]*$|-{3,}[ \t]*$)", re.MULTILINE)
_HEADING = re.compile(
    r"^(?=(Args|Arguments|Params|Parameters|Returns|Raises|Yields|Examples?|Notes?):[ \t]*\n[ \t]+\S)", re.MULTILINE
)
_END = re.compile(
    r"^(?:(?:Args|Arguments|Params|Parameters|Keyword Arg(?:ument)?s|Other (?:Parameters|Args)|Attributes|Returns"
    r"|Yields|Receives|Raises|Warns):[ \t]*\n[ \t]+\S"
    r"|(?:(?:Other )?Parameters|Attributes|Methods|Returns|Yields|Receives|Raises|Warn(?:s|ings)|See Also|Notes"
    r"|References|Examples)[ \t]*\n-{3,}[ \t]*$"
    r"|:(?:param(?:eter)?|arg(?:ument)?|key(?:word)?|type|returns?|rtype|raises?|except(?:ion)?|i?var|cvar|vartype|meta)"
    r"\b[^:\n]*:)",
    re.MULTILINE,
)
"""Where a description ends: at the first section of parameters or results, in any of the three styles.

Google's `Note:` and `Example:` are part of it if they come before: a docstring guides the model by them.
"""
# Few docstrings need these patterns, which take milliseconds to compile: `re` does so when they are used.
_TITLE = r"(?:(?:keyword |other )?(?:args|arguments)|params|(?:other )?parameters)"
_LOOSE_HEADING = rf"(?im)^[ \t#*_`]*{_TITLE}[ \t*_`]*:?[ \t*_`]*$"
_UNDERLINED = rf"(?im)^{_TITLE}[ \t]*:?[ \t]*\n[-=]{{3,}}[ \t]*$"
_MARKS = "-*+•`_ \t"
_OTHER_SECTION = (
    r"(?im)^[ \t]*[:@](?:returns?|rtype|raises|yields)\b"
    r"|^[#*_` \t]*(?:returns?|yields|raises|examples?|notes?|see also|references|warnings?)[*_` \t]*(?::|$)"
)
_ENTRY = r"""(?mx)
    ^(?P<indent>[ \t]*)
    (?:
        (?:[-*+•][ \t]+)? [`*]{0,2} (?P<names>\w+(?:,[ \t]*\w+)*) [`*]{0,2} [ \t]* (?:[(（].*?[)）])? [`*]{0,2}
        [ \t]* (?: : | ： | (?<=[ \t])(?:--?|–|—)[ \t] )
    |
        [:@](?:param(?:eter)?|arg(?:ument)?|key(?:word)?) [ \t]+ (?:[^:\n]*[^\w:\n])?? (?P<field>\w+)
        [ \t]* (?: : | ： | (?<=[ \t])(?:--?|–|—)[ \t] )
    |
        @param [ \t]+ (?P<untyped>\w+) [ \t]
    )
    [`*]{0,2} [ \t]* (?P<text>.*) (?=(?P<more>(?:\n(?P=indent)[ \t]+\S.*)*))
"""
"""A parameter in the ways in which people write one: its names, and its text with the lines below, indented more."""
_KEPT_LINE = re.compile(r"^(?:\s|[-*+>|#]|\d+[.)]\s)", re.MULTILINE)
"""A line of a list, a table, a heading or code, which must not be joined with the one before."""
_PARAMETER_SECTIONS = ("parameters", "other parameters", "attributes")


@dataclass(frozen=True, slots=True)
class ParsedDocstring:
    """A parsed docstring. `parameters` contains only the names that were asked for."""

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def read_docstring(docstring: str | None, names: Collection[str]) -> ParsedDocstring:
    """The description in `docstring`, and its texts for the parameters in `names`.

    The style is the one that explains most of them: guessing it from headings alone mistakes prose for sections.
    """
    text = inspect.cleandoc((docstring or "").replace("\r\n", "\n"))
    if "\n---" in text or "\n===" in text:
        text = re.sub(_UNDERLINED, "Parameters\n----------", text)
    end = _find_end(text, names)
    description = _read_description(text[:end])
    if end == len(text) and not _SECTION.search(text):
        return ParsedDocstring(description)
    readings = [_read_parameters(text, style, names) for style in ("google", "numpy", "sphinx")]
    best = max(readings, key=lambda reading: (sum(map(bool, reading.values())), len(reading)))
    unread = [name for name in names if name not in best]
    found = {**best, **_read_entries(text[end:], unread)} if unread else best
    return ParsedDocstring(description, {name: described for name, described in found.items() if described})


def read_first_paragraph(docstring: str | None) -> str:
    """The first paragraph of `docstring`, on one line."""
    text = inspect.cleandoc(docstring or "").partition("\n\n")[0]
    return _read_description(text[: _find_end(text, ())])


def _find_end(text: str, names: Collection[str]) -> int:
    """Find where the description ends. A heading written in another way counts if one of the parameters follows."""
    found = _END.search(text)
    end = found.start() if found else len(text)
    begins = (*names, ":", "@")
    if not any(line.lstrip(_MARKS).startswith(begins) for line in text[:end].splitlines()):
        return end
    starts = [match.start() for match in re.finditer(_LOOSE_HEADING, text[:end])]
    starts += [match.start() for match in re.finditer(_ENTRY, text[:end]) if match["names"] is None]
    return next((start for start in sorted(starts) if _read_entries(text[start:end], names)), end)


def _read_entries(text: str, names: Collection[str]) -> dict[str, str]:
    """Read the texts of these parameters in a section that griffe doesn't parse."""
    found: dict[str, str] = {}
    other = re.search(_OTHER_SECTION, text)
    for match in re.finditer(_ENTRY, text[: other.start()] if other else text):
        for name in re.split(r",\s*", match["names"] or match["field"] or match["untyped"]):
            described = " ".join((match["text"] + match["more"]).split())
            if name in names and described:
                found.setdefault(name, described)
    return found


def _read_description(text: str) -> str:
    """Join the wrapped lines of each paragraph before the parameters; lists and code keep their lines."""
    text = text.strip()
    if "```" in text:
        return text
    return "\n\n".join(map(_join_lines, re.split(r"\n(?:[ \t]*\n)+", text)))


def _join_lines(paragraph: str) -> str:
    return paragraph.rstrip() if _KEPT_LINE.search(paragraph) else " ".join(paragraph.split())


def _read_parameters(text: str, style: str, names: Collection[str]) -> dict[str, str]:
    """Read the texts of these parameters by griffe, each empty where it has only a type."""
    from griffe import Docstring, parse_google, parse_numpy, parse_sphinx

    parse = {"google": parse_google, "numpy": parse_numpy, "sphinx": parse_sphinx}[style]
    if style == "google":
        # griffe recognises a heading only after a blank line, which people omit.
        text = _HEADING.sub("\n", text)
    found: dict[str, str] = {}
    for section in parse(Docstring(text), warnings=False):
        if section.kind.value in _PARAMETER_SECTIONS:
            for entry in section.value:
                # NumPy writes one text for several names: "width, height : int".
                for name in entry.name.replace("*", "").split(","):
                    if name.strip() in names:
                        found[name.strip()] = " ".join(entry.description.split())
    return found
