"""Makes a `Sequence` from the syntax tree of tree-sitter-bash, and refuses whatever isn't certain.

The tree is not trusted: it has other ideas than a shell about blanks, here-documents and errors. So only known kinds of
nodes are read, each leaf must look like what it is said to be, and between two leaves there may be nothing but blanks
(or newlines, where a shell allows them). A text that passes has the same words and operators for every shell.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from ferrule.sandbox.shell.command_line.redirections import RedirectionReader, add_redirections
from ferrule.sandbox.shell.command_line.syntax import (
    AndOr,
    Assignment,
    Compound,
    PipedCommands,
    Redirection,
    Sequence,
    SimpleCommand,
    Statement,
    UnreadableError,
    Word,
)
from ferrule.sandbox.shell.command_line.words import WORD_NODES, WordReader, check_gap

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["RESERVED_WORDS", "TreeReader"]

_MAX_DEPTH = 40
RESERVED_WORDS = frozenset(
    {"!", "{", "}", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if"}
    | {"in", "select", "then", "until", "while"}
)
_SEPARATORS = frozenset({";", "&", "\n"})
_TEST_LEAVES = WORD_NODES | {"test_operator", "=", "==", "!=", "!", "extglob_pattern", "-a", "-o"}
_TEST_BRANCHES = frozenset({"unary_expression", "binary_expression", "negated_expression"})


class TreeReader:
    """Reads one syntax tree. Every method raises `UnreadableError` for what isn't certain."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._words = WordReader(data, self._read_substitution)
        self.substitutions = 0
        """How many were read so far."""

    @cached_property
    def _redirections(self) -> RedirectionReader:
        return RedirectionReader(self._data, self._words)

    def read(self, root: Node) -> Sequence:
        """Read the whole tree."""
        check_gap(self._data, 0, root.start_byte, lines=True)
        check_gap(self._data, root.end_byte, len(self._data), lines=True)
        return self._read_sequence(root.children, 0, root.start_byte, root.end_byte)

    def _read_sequence(self, nodes: list[Node], depth: int, start: int, end: int) -> Sequence:
        """Read statements and their separators, from `start` to `end`."""
        if depth > _MAX_DEPTH:
            raise UnreadableError(f"it is nested more than {_MAX_DEPTH} levels deep")
        found, at, is_open = Sequence(), start, False
        for node in nodes:
            check_gap(self._data, at, node.start_byte, lines=True)
            has_newline = b"\n" in self._data[at : node.start_byte]
            kind, at = node.type, node.end_byte
            if kind == "comment":
                self._check_comment(node)
            elif kind in _SEPARATORS:
                if kind != "\n" and (not is_open or has_newline):
                    raise UnreadableError(f"nothing stands before {kind!r}")
                if kind == "&":
                    found.background.add(len(found.statements) - 1)
                is_open = False
            else:
                if is_open and not has_newline:
                    raise UnreadableError("two commands aren't separated")
                found.statements.append(self._read_statement(node, depth + 1))
                is_open = True
        check_gap(self._data, at, end, lines=True)
        return found

    def _check_comment(self, node: Node) -> None:
        start, data = node.start_byte, self._data
        if start and data[start - 1 : start] not in (b" ", b"\t", b"\n", b";", b"&", b"|", b"(", b")"):
            raise UnreadableError("a comment isn't separated from what is before it")
        if b"\n" in data[start : node.end_byte] or data[start : start + 1] != b"#":
            raise UnreadableError("a comment isn't on one line")

    def _read_statement(self, node: Node, depth: int) -> Statement:
        if depth > _MAX_DEPTH:
            raise UnreadableError(f"it is nested more than {_MAX_DEPTH} levels deep")
        reading = _READERS.get(node.type)
        if reading is None:
            raise UnreadableError(_REASONS.get(node.type, f"it has a part that can't be read ({node.type})"))
        statement: Statement = reading(self, node, depth)
        return statement

    def _read_command(self, node: Node, depth: int) -> SimpleCommand:
        assignments, words, redirections = list[Assignment](), list[Word](), list[Redirection]()
        at = node.start_byte
        for index, child in enumerate(node.children):
            start = child.start_byte
            check_gap(self._data, at, start)
            if index and at == start and child.type not in ("file_redirect", "herestring_redirect"):
                raise UnreadableError("two words aren't separated")
            at = child.end_byte
            kind = child.type
            if redirections and redirections[-1].ends_command and "redirect" not in kind:
                raise UnreadableError(f"a word after {redirections[-1].operator}, which is a program for some shells")
            if kind == "command_name":
                if words:
                    raise UnreadableError("a command has two names")
                words.append(self._read_name(child, depth))
            elif kind == "variable_assignment" and not words:
                assignments.append(self._read_assignment(child, depth))
            elif kind in ("file_redirect", "herestring_redirect"):
                redirection, others = self._redirections.read(child, depth)
                redirections.append(redirection)
                words += others
            elif kind in WORD_NODES and words:
                words.append(self._words.read(child, depth))
            else:
                raise UnreadableError(f"a command has a part that can't be read ({kind})")
        return SimpleCommand(tuple(assignments), tuple(words), tuple(redirections), node.start_byte, node.end_byte)

    def _read_name(self, node: Node, depth: int) -> Word:
        if node.child_count > 1:
            raise UnreadableError("the name of a program isn't certain")
        word = self._words.read(node.children[0] if node.child_count else node, depth)
        if word.is_plain and (word.text in RESERVED_WORDS or "=" in (word.text or "")):
            raise UnreadableError(f"{word.text!r} isn't a program")
        return word

    def _read_assignment(self, node: Node, depth: int) -> Assignment:
        children = node.children
        if [child.type for child in children[:2]] != ["variable_name", "="] or len(children) > 3:
            raise UnreadableError("an assignment isn't a plain one")
        name = self._data[children[0].start_byte : children[0].end_byte]
        if children[0].end_byte != children[1].start_byte or not re.fullmatch(rb"[A-Za-z_]\w*", name):
            raise UnreadableError("an assignment isn't a plain one")
        end = children[1].end_byte
        if len(children) == 2:
            return Assignment(name.decode(), Word("", end, end))
        if children[2].start_byte != end or children[2].type not in WORD_NODES:
            raise UnreadableError("an assignment isn't a plain one")
        return Assignment(name.decode(), self._words.read(children[2], depth))

    def _read_assignments(self, node: Node, depth: int) -> SimpleCommand:
        nodes = [node] if node.type == "variable_assignment" else node.children
        at, found = node.start_byte, list[Assignment]()
        for child in nodes:
            check_gap(self._data, at, child.start_byte)
            if child.type != "variable_assignment" or (found and at == child.start_byte):
                raise UnreadableError("an assignment isn't a plain one")
            found.append(self._read_assignment(child, depth))
            at = child.end_byte
        return SimpleCommand(tuple(found), (), (), node.start_byte, node.end_byte)

    def _read_redirected(self, node: Node, depth: int) -> Statement:
        children, at = node.children, node.start_byte
        body: Statement = SimpleCommand((), (), (), node.start_byte, node.end_byte)
        redirections, words, rest = list[Redirection](), list[Word](), list[tuple[str, "Node"]]()
        for index, child in enumerate(children):
            check_gap(self._data, at, child.start_byte)
            at = child.end_byte
            if rest:
                raise UnreadableError("a here-document isn't certain")
            if child.type in ("file_redirect", "herestring_redirect"):
                redirection, others = self._redirections.read(child, depth)
                redirections.append(redirection)
                words += others
            elif child.type == "heredoc_redirect" and index == len(children) - 1:
                found, rest = self._redirections.read_heredoc(child, depth)
                redirections += found
            elif index == 0 and child.type in _REDIRECTABLE:
                body = self._read_statement(child, depth + 1)
            else:
                raise UnreadableError(f"a redirection of a part that can't be read ({child.type})")
        statement = add_redirections(body, tuple(redirections), tuple(words))
        for operator, following in rest:
            other = self._read_statement(following, depth + 1)
            statement = _join_stages([statement, other]) if operator == "|" else AndOr((statement, other), (operator,))
        return statement

    def _read_list(self, node: Node, depth: int) -> AndOr:
        items, operators = list[Statement](), list[str]()
        while node.type == "list":
            left, *others = node.children
            operator, right = others[0], others[-1]
            check_gap(self._data, left.end_byte, operator.start_byte)
            at = operator.end_byte
            for child in others[1:]:
                check_gap(self._data, at, child.start_byte, lines=True)
                at = child.end_byte
                if child is not right:
                    if child.type != "comment":
                        raise UnreadableError("a list of commands isn't certain")
                    self._check_comment(child)
            if operator.type not in ("&&", "||") or len(others) < 2 or right.type == "list":
                raise UnreadableError("a list of commands isn't certain")
            items.append(self._read_statement(right, depth + 1))
            operators.append(operator.type)
            node = left
        items.append(self._read_statement(node, depth + 1))
        return AndOr(tuple(reversed(items)), tuple(reversed(operators)))

    def _read_pipeline(self, node: Node, depth: int) -> Statement:
        stages, at, expects = list[Statement](), node.start_byte, True
        for child in node.children:
            check_gap(self._data, at, child.start_byte, lines=expects)
            at = child.end_byte
            if child.type == "comment" and expects:
                self._check_comment(child)
            elif (child.type in ("|", "|&")) is expects or child.type == "list":
                raise UnreadableError("a pipeline isn't certain")
            elif expects:
                stages.append(self._read_statement(child, depth + 1))
                expects = False
            else:
                expects = True
        if expects:
            raise UnreadableError("a pipeline has no end")
        return _join_stages(stages)

    def _read_negated(self, node: Node, depth: int) -> Statement:
        if node.child_count != 2 or node.children[0].type != "!":
            raise UnreadableError("a negation isn't certain")
        mark, body = node.children
        check_gap(self._data, mark.end_byte, body.start_byte)
        if mark.end_byte == body.start_byte:
            raise UnreadableError("a negation isn't certain")
        # A list of its own, since what follows `&&` is reached when it failed.
        return AndOr((self._read_statement(body, depth + 1),), ())

    def _read_group(self, node: Node, depth: int) -> Compound:
        children = node.children
        ends = (children[0].type, children[-1].type)
        if ends not in (("{", "}"), ("(", ")")) or len(children) < 3:
            raise UnreadableError("arithmetic in (( )) is a command for some shells")
        inside = children[1:-1]
        start, end = children[0].end_byte, children[-1].start_byte
        is_group = ends[0] == "{"
        if is_group:
            self._check_closed(inside, end)
            if inside[0].start_byte == start:
                raise UnreadableError("a group isn't certain")
        body = self._read_sequence(inside, depth + 1, start, end)
        if not body.statements:
            raise UnreadableError("a group is empty")
        return Compound("group" if is_group else "subshell", (body,))

    def _check_closed(self, nodes: list[Node], end: int) -> None:
        """Check that a keyword at `end` is at a place where a shell sees one."""
        last = nodes[-1]
        if last.type not in _SEPARATORS and b"\n" not in self._data[last.end_byte : end]:
            raise UnreadableError("a keyword isn't where a shell sees one")

    def _read_if(self, node: Node, depth: int) -> Compound:
        bodies = list[Sequence]()
        self._read_branches(node, depth, bodies, is_last=True)
        return Compound("branches", tuple(bodies))

    def _read_branches(self, node: Node, depth: int, bodies: list[Sequence], is_last: bool) -> None:
        """Read the statements between the keywords of an `if`, and those of its other clauses."""
        inside, at, was = list["Node"](), node.start_byte, ""
        for child in node.children:
            kind = child.type
            if kind not in _IF_WORDS:
                inside.append(child)
                continue
            self._end_clause(inside, was, at, child.start_byte, depth, bodies)
            inside, at, was = [], child.end_byte, kind
            if kind in ("elif_clause", "else_clause"):
                self._read_branches(child, depth, bodies, is_last=False)
        self._end_clause(inside, was, at, node.end_byte, depth, bodies, is_end=not is_last)

    def _end_clause(
        self,
        inside: list[Node],
        was: str,
        start: int,
        end: int,
        depth: int,
        bodies: list[Sequence],
        is_end: bool = False,
    ) -> None:
        if was in ("if", "then", "elif", "else"):
            if not inside:
                raise UnreadableError("a clause is empty")
            if not is_end:
                self._check_closed(inside, end)
            elif inside[-1].type not in _SEPARATORS and self._data[end : end + 1] != b"\n":
                raise UnreadableError("a keyword isn't where a shell sees one")
            bodies.append(self._read_sequence(inside, depth + 1, start, end))
        elif inside:
            raise UnreadableError("a clause isn't certain")
        else:
            check_gap(self._data, start, end, lines=True)

    def _read_while(self, node: Node, depth: int) -> Compound:
        keyword, *condition, body = node.children
        if keyword.type not in ("while", "until") or body.type != "do_group" or not condition:
            raise UnreadableError("a loop isn't certain")
        self._check_closed(condition, body.start_byte)
        test = self._read_sequence(condition, depth + 1, keyword.end_byte, body.start_byte)
        return Compound("loop", (test, self._read_do(body, depth)))

    def _read_do(self, node: Node, depth: int) -> Sequence:
        first, *inside, last = node.children
        if first.type != "do" or last.type != "done" or not inside:
            raise UnreadableError("a loop isn't certain")
        self._check_closed(inside, last.start_byte)
        return self._read_sequence(inside, depth + 1, first.end_byte, last.start_byte)

    def _read_for(self, node: Node, depth: int) -> Compound:
        children = node.children
        kinds = [child.type for child in children]
        if kinds[:2] != ["for", "variable_name"] or kinds[-1] != "do_group":
            raise UnreadableError("a loop isn't certain")
        at, words, is_closed = children[0].end_byte, list[Word](), len(children) == 3
        for index, child in enumerate(children[1:], 1):
            check_gap(self._data, at, child.start_byte, lines=child.type == "do_group")
            is_separated = at != child.start_byte or child.type in _SEPARATORS
            newline = b"\n" in self._data[at : child.start_byte]
            at = child.end_byte
            if child.type in _SEPARATORS and child.type != "&":
                is_closed = True
            elif child.type == "do_group":
                if not (is_closed or newline):
                    raise UnreadableError("a loop isn't certain")
            elif index > 2 and child.type in WORD_NODES and is_separated and not is_closed:
                words.append(self._words.read(child, depth))
            elif child.type not in ("variable_name", "in") or index != ("variable_name", "in").index(child.type) + 1:
                raise UnreadableError("a loop isn't certain")
        name = self._data[children[1].start_byte : children[1].end_byte].decode()
        return Compound("loop", (self._read_do(children[-1], depth),), tuple(words), variable=name)

    def _read_case(self, node: Node, depth: int) -> Compound:
        children = node.children
        if [child.type for child in (children[0], *children[2:3], children[-1])] != ["case", "in", "esac"]:
            raise UnreadableError("a case isn't certain")
        words, bodies = [self._words.read(children[1], depth)], list[Sequence]()
        check_gap(self._data, children[0].end_byte, children[1].start_byte)
        check_gap(self._data, children[1].end_byte, children[2].start_byte)
        at = children[2].end_byte
        for child in children[3:-1]:
            check_gap(self._data, at, child.start_byte, lines=True)
            at = child.end_byte
            if child.type == "comment":
                self._check_comment(child)
                continue
            if child.type != "case_item":
                raise UnreadableError("a case isn't certain")
            patterns, body = self._read_case_item(child, depth)
            words += patterns
            bodies.append(body)
        check_gap(self._data, at, children[-1].start_byte, lines=True)
        return Compound("branches", tuple(bodies), tuple(words))

    def _read_case_item(self, node: Node, depth: int) -> tuple[list[Word], Sequence]:
        at, patterns, kinds = node.start_byte, list[Word](), [child.type for child in node.children]
        if ")" not in kinds or kinds[-1] not in (";;", *_SEPARATORS, *_READERS):
            raise UnreadableError("a case isn't certain")
        close = kinds.index(")")
        for index, child in enumerate(node.children[: close + 1]):
            check_gap(self._data, at, child.start_byte)
            at = child.end_byte
            if child.type in WORD_NODES or child.type == "extglob_pattern":
                patterns.append(self._words.read(child, depth))
            elif child.type not in ("|", ")") and not (child.type == "(" and index == 0):
                raise UnreadableError("a case isn't certain")
        has_end = kinds[-1] == ";;"
        inside = node.children[close + 1 : -1] if has_end else node.children[close + 1 :]
        end = node.children[-1].start_byte if has_end else node.end_byte
        if not has_end and inside and inside[-1].type not in _SEPARATORS and self._data[end : end + 1] != b"\n":
            raise UnreadableError("a case isn't certain")
        return patterns, self._read_sequence(inside, depth + 1, at, end)

    def _read_test(self, node: Node, depth: int) -> SimpleCommand:
        """Read `[ … ]` or `[[ … ]]` as the command that it is for every shell."""
        words, at, pending = list[Word](), node.start_byte, list(reversed(node.children))
        while pending:
            child = pending.pop()
            kind, start, end = child.type, child.start_byte, child.end_byte
            if kind in _TEST_BRANCHES and child.child_count:
                pending += reversed(child.children)
                continue
            check_gap(self._data, at, start)
            if words and at == start:
                raise UnreadableError("a test isn't certain")
            at = end
            if kind in ("[", "[[", "]", "]]", "=", "==", "!=", "!", "-a", "-o"):
                text = self._data[start:end].decode()
                words.append(Word(text, start, end, text, is_plain=True))
            elif kind in _TEST_LEAVES:
                words.append(self._words.read(child, depth))
            else:
                raise UnreadableError(f"some shells run {kind!r} in a test")
        return SimpleCommand((), tuple(words), (), node.start_byte, node.end_byte)

    def _read_declaration(self, node: Node, depth: int) -> SimpleCommand:
        words, at = list[Word](), node.start_byte
        for index, child in enumerate(node.children):
            check_gap(self._data, at, child.start_byte)
            if index and at == child.start_byte:
                raise UnreadableError("two words aren't separated")
            at = child.end_byte
            if child.type == "variable_assignment":
                assignment = self._read_assignment(child, depth)
                value = assignment.value
                text = None if value.text is None else f"{assignment.name}={value.text}"
                found = value.substitutions
                words.append(Word(text, child.start_byte, at, f"{assignment.name}={value.prefix}", substitutions=found))
            elif index == 0 or child.type in WORD_NODES or child.type == "variable_name":
                words.append(self._words.read(child, depth) if index else self._read_keyword(child))
            else:
                raise UnreadableError(f"a declaration has a part that can't be read ({child.type})")
        return SimpleCommand((), tuple(words), (), node.start_byte, node.end_byte)

    def _read_keyword(self, node: Node) -> Word:
        text = self._data[node.start_byte : node.end_byte].decode()
        if text not in ("declare", "typeset", "export", "readonly", "local", "unset", "unsetenv"):
            raise UnreadableError("a declaration isn't certain")
        return Word(text, node.start_byte, node.end_byte, text, is_plain=True)

    def _read_substitution(self, node: Node, depth: int) -> Sequence:
        """Read what is inside `$( )`, backquotes, `<( )` or `>( )`."""
        self.substitutions += 1
        children, data = node.children, self._data
        opening = data[children[0].start_byte : children[0].end_byte].strip()
        start, end = children[0].end_byte, children[-1].start_byte
        if (opening, children[-1].type) not in ((b"$(", ")"), (b"`", "`"), (b"<(", ")"), (b">(", ")")):
            raise UnreadableError("a substitution isn't certain")
        if opening == b"`" and b"\\" in data[start:end]:
            raise UnreadableError("a backslash inside of backquotes is read twice")
        if opening == b"$(" and data[start : start + 1] == b"(":
            raise UnreadableError("$(( may begin arithmetic or a command")
        inside = children[1:-1]
        if len(inside) == 1 and inside[0].type == "file_redirect":  # $(< file)
            check_gap(self._data, start, inside[0].start_byte)
            check_gap(self._data, inside[0].end_byte, end)
            redirection, others = self._redirections.read(inside[0], depth)
            found = SimpleCommand((), tuple(others), (redirection,), start, end)
            return Sequence([found])
        return self._read_sequence(inside, depth + 2, start, end)


def _join_stages(stages: list[Statement]) -> Statement:
    """Make a pipeline; the tree may have `a && b > f | c` as a pipeline whose first stage is `a && b > f`."""
    pipelines, operators = [list[Statement]()], list[str]()
    for stage in stages:
        if not (isinstance(stage, AndOr) and stage.operators):
            pipelines[-1].append(stage)
            continue
        pipelines[-1].append(stage.items[0])
        pipelines += [[item] for item in stage.items[1:]]
        operators += stage.operators
    items = tuple(PipedCommands(tuple(each)) if len(each) > 1 else each[0] for each in pipelines)
    return AndOr(items, tuple(operators)) if operators else items[0]


_READERS = {
    "command": TreeReader._read_command,
    "variable_assignment": TreeReader._read_assignments,
    "variable_assignments": TreeReader._read_assignments,
    "redirected_statement": TreeReader._read_redirected,
    "list": TreeReader._read_list,
    "pipeline": TreeReader._read_pipeline,
    "negated_command": TreeReader._read_negated,
    "compound_statement": TreeReader._read_group,
    "subshell": TreeReader._read_group,
    "if_statement": TreeReader._read_if,
    "while_statement": TreeReader._read_while,
    "for_statement": TreeReader._read_for,
    "case_statement": TreeReader._read_case,
    "test_command": TreeReader._read_test,
    "declaration_command": TreeReader._read_declaration,
    "unset_command": TreeReader._read_declaration,
}
_REDIRECTABLE = frozenset(_READERS) - {"redirected_statement"}
_IF_WORDS = frozenset({"if", "then", "fi", "elif", "else", "elif_clause", "else_clause"})
_REASONS = {
    "ERROR": "it has a syntax error, or a part that only some shells can read",
    "function_definition": "it defines a function, which can change what later commands mean",
    "c_style_for_statement": "it has a loop that only some shells can read",
}
