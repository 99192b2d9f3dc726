"""Reads the words of a command line: quoting is removed, and what only the running shell knows stays unknown.

Where `dash` and `bash` read a word differently (`$'…'`, `{a,b}`) it stays unknown. What the variable of a loop may
stand for is known where it is certain: literal words, or a pattern in quotes.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from typing import TYPE_CHECKING

from ferrule.sandbox.shell.command_line.syntax import Sequence, UnreadableError, Word

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["WORD_NODES", "WordReader", "check_gap", "expand_variables", "find_loop_values"]

WORD_NODES = frozenset(
    {"word", "number", "string", "raw_string", "ansi_c_string", "concatenation", "simple_expansion", "expansion"}
    | {"command_substitution", "process_substitution", "arithmetic_expansion", "brace_expression", "$"}
)

_BARE = re.compile(rb"""(?:\\[^\n]|[^\\\s;&|<>()`'"$])+""")
_SPECIAL = re.compile(r"[\\*?\[\]{}~]")
_ESCAPED = re.compile(r"\\(.)")
_IN_QUOTES = re.compile(r'\\([$`"\\])|\\\n')
_STATIC_IN_QUOTES = re.compile(rb"""(?:\\.|[^\\"`$]|\$(?![\w({@*#?$!\[\\-]))*""", re.DOTALL)
_RAW = re.compile(rb"'[^']*'")
_DOLLAR_QUOTED = re.compile(rb"\$'(?:[^'\\]|\\[^'])*'")
_VARIABLE = re.compile(rb"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])")
# No operator that assigns, evaluates indirectly (`${!a}`, `${a@P}`) or takes a subscript that is evaluated.
_EXPANSION = re.compile(
    rb"""\$\{(?:\#?(?:[A-Za-z_]\w*|[0-9@*?$!#-])|(?:[A-Za-z_]\w*|[0-9@*])(?:\[[@*0-9]\])?"""
    rb"""(?:(?::?[-+?]|%%?|\#\#?|//?|\^\^?|,,?)[\w.,/:*?\ =+-]*|:\ ?-?\d+(?::\ ?-?\d+)?)?)\}"""
)
# No names: a shell evaluates their values, which may hold a command substitution in a subscript.
_ARITHMETIC = re.compile(rb"\$\(\([0-9\s+*/%<>&|^!?:(),-]*\)\)")
_GAP = re.compile(rb"(?:[ \t]|(?<=[ \t])\\\n)*")
_LINES_GAP = re.compile(rb"(?:[ \t\n]|(?<=[ \t\n])\\\n)*")
_VARIABLES = {"simple_expansion", "expansion"}
_EXPANSIONS = {"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"}
_MAX_VALUES = 32
_LITERAL = re.compile(r"[\w./+@:,%=-]+", re.ASCII)
# A dot that an option or the end of a command follows is the folder of a `find`.
_CHANGING = re.compile(rb"(?:^|[\s;&|({])(?:\.[ \t]+[^-\s|;&)]|(?:source|eval)\s)")
_USE = re.compile(rb'(")?\$(?:\{(\w+)\}|(\w+))(?(1)")')


def check_gap(data: bytes, start: int, end: int, lines: bool = False) -> None:
    """Check that there are only blanks (and with `lines` newlines) from `start` to `end`. Raises `UnreadableError`."""
    if start > end or (start < end and not (_LINES_GAP if lines else _GAP).fullmatch(data, start, end)):
        shown = data[start:end].decode(errors="replace")
        raise UnreadableError(f"between words there is {shown!r}")


class WordReader:
    """Makes words from the nodes of one syntax tree; `read_program` reads what is inside a substitution."""

    def __init__(self, data: bytes, read_substitution: Callable[[Node, int], Sequence]) -> None:
        self._data = data
        self._read_substitution = read_substitution

    def read(self, node: Node, depth: int) -> Word:
        """Read one word. Raises `UnreadableError`."""
        start, end = node.start_byte, node.end_byte
        kind = node.type
        if kind in ("word", "number", "variable_name", "test_operator", "extglob_pattern") and not node.child_count:
            return self._read_bare(start, end, is_first=True)
        pieces = node.children if kind == "concatenation" else [node]
        words: list[Word] = []
        at = start
        for piece in pieces:
            if piece.start_byte != at:
                raise UnreadableError("a word has a gap in it")
            at = piece.end_byte
            words.append(self._read_piece(piece, depth, is_first=piece.start_byte == start))
        if at != end:
            raise UnreadableError("a word has a gap in it")
        return words[0] if len(words) == 1 else _join(words, self._data[start:end])

    def _read_piece(self, node: Node, depth: int, is_first: bool) -> Word:
        kind, start, end = node.type, node.start_byte, node.end_byte
        if kind == "string":
            return self._read_string(node, depth)
        if kind == "raw_string":
            raw = self._data[start:end]
            if not _RAW.fullmatch(raw):
                raise UnreadableError("a quoted text isn't closed")
            text = raw[1:-1].decode()
            return Word(text, start, end, text)
        if kind in ("word", "number", "{", "}", "test_operator", "extglob_pattern") and not node.child_count:
            return self._read_bare(start, end, is_first)
        if kind == "$":
            # At the end of a word it stands for itself; before a quote, dash and bash differ in what it means.
            return Word(None, start, end)
        if kind == "ansi_c_string":
            if not _DOLLAR_QUOTED.fullmatch(self._data, start, end):
                raise UnreadableError("dash and bash see different ends of a $'…' text")
            return Word(None, start, end)
        if kind == "brace_expression":
            if not re.fullmatch(rb"\{\w+\.\.\w+\}", self._data[start:end]):
                raise UnreadableError("an unusual brace expression")
            return Word(None, start, end)
        return self._read_expansion(node, depth)

    def _read_expansion(self, node: Node, depth: int) -> Word:
        kind, start, end = node.type, node.start_byte, node.end_byte
        if kind in ("command_substitution", "process_substitution"):
            is_pipe, found = kind == "process_substitution", (self._read_substitution(node, depth),)
            return Word(None, start, end, is_pipe=is_pipe, is_output=not is_pipe, substitutions=found)
        pattern = {"simple_expansion": _VARIABLE, "expansion": _EXPANSION, "arithmetic_expansion": _ARITHMETIC}
        if kind not in pattern:
            raise UnreadableError(f"what {self._show(start, end)} means isn't certain")
        if not pattern[kind].fullmatch(self._data, start, end):
            raise UnreadableError(f"what {self._show(start, end)} evaluates isn't certain")
        return Word(None, start, end)

    def _read_bare(self, start: int, end: int, is_first: bool) -> Word:
        raw = self._data[start:end]
        if not _BARE.fullmatch(raw):
            raise UnreadableError(f"what {self._show(start, end)} means isn't certain")
        text = raw.decode()
        if is_first and text[0] == "#":
            raise UnreadableError("a comment looks like a word")
        if not text.isascii() and any(unicodedata.category(each) in ("Zs", "Zl", "Zp", "Cf", "Cc") for each in text):
            raise UnreadableError("an invisible character stands outside of quotes")
        if not _SPECIAL.search(text):
            return Word(text, start, end, text, is_plain=True)
        return _read_special(text, start, end, is_first)

    def _read_string(self, node: Node, depth: int) -> Word:
        data, start, end = self._data, node.start_byte, node.end_byte
        if data[start : start + 1] != b'"' or data[end - 1 : end] != b'"' or end - start < 2:
            raise UnreadableError("a quoted text isn't closed")
        holes = [child for child in node.children if child.type in _EXPANSIONS]
        at, texts, found = start + 1, [], list[Sequence]()
        for hole in holes:
            begin = hole.start_byte
            while data[begin : begin + 1].isspace():  # the grammar counts blanks before `$(` to it
                begin += 1
            texts.append(self._read_quoted(at, begin))
            if begin != hole.start_byte and hole.type != "command_substitution":
                raise UnreadableError("a quoted text isn't certain")
            found += self._read_expansion(hole, depth).substitutions
            at = hole.end_byte
        texts.append(self._read_quoted(at, end - 1))
        is_single = not any(b"@" in data[hole.start_byte : hole.end_byte] for hole in holes if hole.type in _VARIABLES)
        text = texts[0] if not holes else None
        return Word(text, start, end, texts[0], is_single=is_single, substitutions=tuple(found))

    def _read_quoted(self, start: int, end: int) -> str:
        if not _STATIC_IN_QUOTES.fullmatch(self._data, start, end):
            raise UnreadableError(f"what {self._show(start, end)} means in quotes isn't certain")
        text = self._data[start:end].decode()
        return _IN_QUOTES.sub(lambda found: found[1] or "", text) if "\\" in text else text

    def _show(self, start: int, end: int) -> str:
        text = self._data[start:end].decode(errors="replace")
        return repr(text if len(text) <= 40 else f"{text[:37]}…")


def _read_special(text: str, start: int, end: int, is_first: bool) -> Word:
    """Read an unquoted text with escapes, patterns, braces or a tilde."""
    plain = re.sub(r"\\.", "", text)
    has_tilde = is_first and text[0] == "~"
    is_unknown = ("{" in text and ("," in text or ".." in text)) or re.search(r"[=:]~", plain) is not None
    if re.search(r"(?:^|[=:])~[A-Za-z_]" if is_first else r"[=:]~[A-Za-z_]", plain):
        raise UnreadableError("~ before a name is the home folder of another account")
    is_unknown = is_unknown or (has_tilde and re.match(r"~(?:/|$)", text) is None)
    pattern = re.search(r"(?<!\\)(?:\\\\)*([*?\[])", text)
    known = _ESCAPED.sub(r"\1", text)
    if is_unknown:
        return Word(None, start, end)
    if pattern and ".." in text:
        return Word(None, start, end, pattern=text)  # what it matches may be anywhere
    if pattern:
        before = _ESCAPED.sub(r"\1", text[: pattern.start(1)])
        return Word(None, start, end, before, has_pattern=True, pattern=text, has_tilde=has_tilde)
    if has_tilde:
        return Word(None, start, end, known, has_tilde=True)
    return Word(known, start, end, known, is_plain="\\" not in text)


def _join(words: list[Word], raw: bytes) -> Word:
    """Join the pieces of one word."""
    found = tuple(each for word in words for each in word.substitutions)
    start, end = words[0].start, words[-1].end
    # A brace expression may be split over several pieces.
    bare = b"".join(raw[word.start - start : word.end - start] for word in words if word.is_plain or word.text is None)
    has_braces = b"{" in bare and (b"," in bare or b".." in bare)
    if has_braces or words[0].has_tilde:
        return Word(None, start, end, substitutions=found)
    prefix = ""
    for word in words:
        prefix += word.prefix
        if word.text is None:
            break
    if all(word.text is not None for word in words):
        return Word(prefix, start, end, prefix)
    has_pattern = b".." not in raw and all(word.has_pattern or word.text is not None for word in words)
    is_single = all(word.is_single or word.text is not None for word in words)
    return Word(None, start, end, prefix, has_pattern=has_pattern, is_single=is_single, substitutions=found)


def find_loop_values(data: bytes, name: str, words: SequenceOf[Word]) -> tuple[Word, ...]:
    """The words that the variable `name` of a loop over `words` stands for in its body; empty if that isn't certain.

    Nothing else in the command line may mention the variable, except to use its value.
    """
    if not words or len(words) > _MAX_VALUES or _CHANGING.search(data):
        return ()
    mentions = re.findall(rb"(\$\{?|for[ \t]+)?\b" + name.encode() + rb"\b", data)
    if b"" in mentions or sum(mention.startswith(b"for") for mention in mentions) != 1:
        return ()
    literal = all(word.text is not None and _LITERAL.fullmatch(word.text) for word in words)
    patterns = all(word.text is not None or (word.has_pattern and not word.has_tilde) for word in words)
    return tuple(words) if literal or patterns else ()


def expand_variables(
    data: bytes, words: SequenceOf[Word], variables: Mapping[str, tuple[Word, ...]]
) -> Iterator[tuple[Word, ...]]:
    """Yield the words of a command with each value of the variables; unchanged where too many, or not certain."""
    used: dict[str, tuple[Word, ...]] = {}
    places: dict[int, str] = {}
    for place, word in enumerate(words):
        found = _USE.fullmatch(data, word.start, word.end) if word.text is None and place else None
        name = (found[2] or found[3]).decode() if found else ""
        values = variables.get(name, ())
        # Without quotes, the shell splits the names that a pattern matches, and a part of one may lead anywhere.
        if found and values and (found[1] or all(value.is_single or _is_literal(value) for value in values)):
            places[place], used[name] = name, values
    combinations = 1
    for values in used.values():
        combinations *= len(values)
    if not places or combinations > _MAX_VALUES:
        yield tuple(words)
        return
    for chosen in itertools.product(*used.values()):
        value = dict(zip(used, chosen, strict=True))
        yield tuple(
            replace(value[places[place]], start=word.start, end=word.end) if place in places else word
            for place, word in enumerate(words)
        )


def _is_literal(word: Word) -> bool:
    return word.text is not None and _LITERAL.fullmatch(word.text) is not None
