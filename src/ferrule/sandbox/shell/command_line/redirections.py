"""Reads redirections and here-documents, and checks that a shell sees the end of one where the syntax tree has it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ferrule.sandbox.shell.command_line.syntax import (
    AndOr,
    Compound,
    PipedCommands,
    Redirection,
    SimpleCommand,
    Statement,
    UnreadableError,
    Word,
)
from ferrule.sandbox.shell.command_line.words import WORD_NODES, WordReader, check_gap

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["RedirectionReader", "add_redirections"]

_REDIRECTIONS = frozenset({">", ">>", ">|", "<", "&>", "&>>", ">&", "<&"})
_CLOSINGS = frozenset({">&-", "<&-"})
_DELIMITER = re.compile(rb"""\\?([A-Za-z_]\w*)|'([A-Za-z_]\w*)'|"([A-Za-z_]\w*)\"""")
_LIVE_IN_HEREDOC = re.compile(rb"`|\$[(\[]|\$\{(?!\w+\})|\\\n")
_HEREDOCS = [[mark, "heredoc_start", "heredoc_body", "heredoc_end"] for mark in ("<<", "<<-")]


class RedirectionReader:
    """Reads the redirections of one syntax tree. Every method raises `UnreadableError` for what isn't certain."""

    def __init__(self, data: bytes, words: WordReader) -> None:
        self._data = data
        self._words = words

    def read(self, node: Node, depth: int) -> tuple[Redirection, list[Word]]:
        """Read a redirection, and the words after its target, which are arguments of the command."""
        children, data = node.children, self._data
        if children[0].type == "file_descriptor":
            descriptor, *children = children
            before = data[max(node.start_byte - 1, 0) : node.start_byte]
            if descriptor.end_byte != children[0].start_byte or (before and before not in b" \t\n;&|(){}"):
                raise UnreadableError("a redirection isn't certain")
            if not data[descriptor.start_byte : descriptor.end_byte].isdigit():
                raise UnreadableError("a redirection to a descriptor with a name")
        operator, at, words = children[0].type, children[0].end_byte, []
        if operator in _CLOSINGS and len(children) == 1:
            return Redirection(operator, None, node.start_byte, node.end_byte), []
        known = _REDIRECTIONS if node.type == "file_redirect" else {"<<<"}
        if operator not in known or len(children) < 2:
            raise UnreadableError(f"a redirection {operator!r}")
        for index, child in enumerate(children[1:]):
            check_gap(self._data, at, child.start_byte)
            if child.type not in WORD_NODES or (index and at == child.start_byte):
                raise UnreadableError("a redirection has no certain target")
            words.append(self._words.read(child, depth))
            at = child.end_byte
        return Redirection(operator, words[0], node.start_byte, words[0].end), words[1:]

    def read_heredoc(self, node: Node, depth: int) -> tuple[list[Redirection], list[tuple[str, Node]]]:
        """Read `<<EOF`, the redirections and at most one command after it on its line, and check where it ends."""
        children = node.children
        if [child.type for child in (*children[:2], *children[-2:])] not in _HEREDOCS:
            raise UnreadableError("a here-document isn't certain")
        operator, start = children[:2]
        check_gap(self._data, operator.end_byte, start.start_byte)
        redirections = [Redirection(operator.type, None, node.start_byte, start.end_byte)]
        at, joined, rest = start.end_byte, "", list[tuple[str, "Node"]]()
        for child in children[2:-2]:
            check_gap(self._data, at, child.start_byte)
            if child.type == "file_redirect" and not joined and not rest:
                redirection, others = self.read(child, depth)
                if others:
                    raise UnreadableError("words after a here-document")
                redirections.append(redirection)
            elif child.type in ("&&", "||") and not joined and not rest:
                joined = child.type
            elif joined and not rest:
                rest.append((joined, child))
            elif child.type == "pipeline" and not rest and child.children[0].type == "|" and child.child_count == 2:
                rest.append(("|", child.children[1]))
                check_gap(self._data, child.children[0].end_byte, child.children[1].start_byte)
            else:
                raise UnreadableError("a here-document isn't certain")
            at = child.end_byte
        self._check_heredoc(start, at, operator.type, children[-1])
        return redirections, rest

    def _check_heredoc(self, start: Node, at: int, operator: str, end: Node) -> None:
        """Check that a shell sees the end of a here-document where the tree has it."""
        data, begin = self._data, start.start_byte
        delimiter = data[begin : start.end_byte]
        line_end = data.find(b"\n", at)
        named = _DELIMITER.fullmatch(delimiter)
        if line_end < 0 or named is None or b"\n" in data[begin:at]:
            raise UnreadableError("a here-document isn't certain")
        check_gap(self._data, at, line_end)
        name = named[1] or named[2] or named[3]
        tabs = rb"\t*" if operator == "<<-" else b""
        closing = re.compile(rb"^" + tabs + re.escape(name) + rb"$", re.MULTILINE).search(data, line_end + 1)
        if closing is None or end.end_byte != closing.end() or closing.start() > end.start_byte:
            raise UnreadableError("a here-document has no certain end")
        if delimiter == name and _LIVE_IN_HEREDOC.search(data, line_end, closing.start()):
            raise UnreadableError("a here-document has a substitution in it")


def add_redirections(body: Statement, redirections: tuple[Redirection, ...], words: tuple[Word, ...]) -> Statement:
    """Add redirections to a statement; `words` after a target are arguments of a simple command."""
    if words and any(each.ends_command for each in redirections):
        raise UnreadableError("a word after &>, which is a program for some shells")
    if isinstance(body, SimpleCommand):
        if words and not body.words and body.assignments:
            raise UnreadableError("a redirection isn't certain")
        found = (*body.redirections, *redirections)
        end = words[-1].end if words else body.end
        return SimpleCommand(body.assignments, (*body.words, *words), found, body.start, end)
    # The tree has `a && b > f` and `a | b > f` as redirections of the whole; for a shell they are those of `b`.
    if isinstance(body, PipedCommands):
        last = add_redirections(body.stages[-1], redirections, words)
        return PipedCommands((*body.stages[:-1], last))
    if isinstance(body, AndOr):
        last = add_redirections(body.items[-1], redirections, words)
        return AndOr((*body.items[:-1], last), body.operators)
    if not words:
        found = (*body.redirections, *redirections)
        return Compound(body.kind, body.bodies, body.words, found, body.variable)
    raise UnreadableError("a redirection isn't certain")
