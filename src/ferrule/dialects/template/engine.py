"""Renders a Hugging Face chat template like transformers, and finds the lines of it that inspect content.

A template is as untrusted as the model it comes with, so it runs in Jinja's immutable sandbox and receives plain JSON
only. The `generation` tag is accepted and has no effect: what is trained is found by rendering (see `cuts.py`). This
file imports jinja2 and is itself imported only when a template is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, NoReturn

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ferrule.dialects.template.marking import parse_marked_template
from ferrule.dialects.template.recording import GuardedNamespace, RecordedMessages, RecordedNamespace, TemplateRecording
from ferrule.errors import DialectError

_SAID = frozenset({"content", "text", "reasoning_content", "thinking", "reasoning", "arguments", "description"})
_HARMLESS = frozenset(
    {"string", "defined", "undefined", "none", "mapping", "iterable", "sequence"}
    | {"tojson", "safe", "items", "list", "length", "count", "first", "last"}
)
_HARMLESS_METHODS = frozenset({"items", "get", "keys", "values"})
_STRIPS = frozenset({"trim", "strip", "lstrip", "rstrip"})
_DICT_ATTRIBUTES = frozenset(dir(dict))
_LOOP_ATTRIBUTES = frozenset({"first", "last", "index", "index0", "length", "previtem", "nextitem"})
_NAMESPACES = frozenset({GuardedNamespace, RecordedNamespace})
_encode_json = json.JSONEncoder(ensure_ascii=False).encode
_OPERATORS = {"eq": "==", "ne": "!=", "in": "in", "notin": "not in", "lt": "<", "gt": ">", "lteq": "<=", "gteq": ">="}


@dataclass(frozen=True, slots=True)
class Inspection:
    """A place where a template inspects content; `words` are the texts it looks for."""

    line: int
    how: str
    words: tuple[str, ...]
    only_strips: bool


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, faster for the keys of messages, for `loop` and for namespaces: most of what templates read."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        kind = type(obj)
        if kind is dict and attribute in obj and attribute not in _DICT_ATTRIBUTES:
            return obj[attribute]
        if kind is LoopContext and attribute in _LOOP_ATTRIBUTES:
            return getattr(obj, attribute)
        if kind in _NAMESPACES and not attribute.startswith("_"):
            with suppress(AttributeError):
                return getattr(obj, attribute)  # a namespace has only what the template assigned
        return super().getattr(obj, attribute)


class TemplateEngine:
    """One compiled template. Raises `DialectError` if it is not valid Jinja."""

    def __init__(self, template: str) -> None:
        self._source = template
        #: Whether what it writes may depend on the time.
        self.reads_clock = "strftime_now" in template
        environment = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        environment.globals["dict"] = _make_plain_dict
        environment.globals["namespace"] = GuardedNamespace
        try:
            self._tree = environment.parse(template)
            self._template = environment.from_string(template)
        except TemplateError as error:
            line = getattr(error, "lineno", None)
            raise DialectError(f"line {line} of the chat template can't be read: {error}") from error

    @cached_property
    def _recorded_template(self) -> Template:
        environment = self._template.environment
        return environment.from_string(parse_marked_template(self._source, environment))

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        now: datetime,
        prompt: bool,
        variables: Mapping[str, Any],
    ) -> str:
        """The text. `now` is the time that the template sees. Raises `DialectError` if it refuses."""
        try:
            return self._template.render(_make_context(messages, tools, now, prompt, variables))
        # A template's expressions raise any Python error: a TypeError, a KeyError, an OverflowError.
        except Exception as error:
            raise _make_refusal(error) from error

    def record(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        now: datetime,
        prompt: bool,
        variables: Mapping[str, Any],
    ) -> TemplateRecording:
        """The text, like `render`, with what is needed to derive those of the conversation's beginnings."""
        recording = TemplateRecording(len(messages))
        context = _make_context(RecordedMessages(messages, recording), tools, now, prompt, variables)
        template = self._recorded_template
        try:
            recording.collect(template.root_render_func(template.new_context(context | recording.variables)))
        except Exception as error:
            self.render(messages, tools, now, prompt, variables)  # its refusal names no recorded type
            raise _make_refusal(error) from error
        return recording

    @cached_property
    def inspections(self) -> tuple[Inspection, ...]:
        """Where the template filters, tests, slices or compares content, in line order."""
        said = set(_SAID)
        # A name that was assigned a value with content holds content, too; twice, for names assigned to names.
        for _ in range(2):
            for node in self._tree.find_all(nodes.Assign):
                if isinstance(node.target, nodes.Name) and _holds(node.node, said):
                    said.add(node.target.name)
        found = {(i.line, i.how): i for i in _find_inspections(self._tree, said)}
        return tuple(found[key] for key in sorted(found))

    def find_culprit(self, texts: Sequence[str]) -> Inspection | None:
        """The most likely reason why texts were rendered differently: the line that looks for words in them."""
        ranked = sorted(
            self.inspections,
            key=lambda i: (not any(word in text for word in i.words for text in texts), i.only_strips, not i.words),
        )
        return ranked[0] if ranked else None


def _make_context(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
    now: datetime,
    prompt: bool,
    variables: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "strftime_now": now.strftime,
        "documents": None,
        **variables,
        "messages": messages,
        "tools": tools,
        "add_generation_prompt": prompt,
    }


def _make_refusal(error: Exception) -> DialectError:
    return DialectError(f"the chat template refuses this conversation: {error}")


@lru_cache(maxsize=8)
def get_engine(template: str) -> TemplateEngine:
    """The engine of a template, compiled once and cached. Raises `DialectError`."""
    return TemplateEngine(template)


def make_inspection_error(engine: TemplateEngine, texts: Sequence[str], who: str) -> DialectError:
    """The error for a template that inspects texts; `who` names these texts."""
    found = engine.find_culprit(texts)
    if found is None:
        return DialectError(
            f"the chat template changes {who}, and none of its lines explains why; "
            "use another template, or one of ferrule's own dialects"
        )
    return DialectError(
        f"line {found.line} of the chat template inspects the content: {found.how}. Its output depends on "
        f"{who}, so its markers can't be distinguished from that: remove that line, or change the content"
    )


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    if indent is None and separators is None and not ensure_ascii and not sort_keys:
        return _encode_json(value)  # the same, without a new encoder
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _make_plain_dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    # A function and not the class, whose attributes would be a way out of the sandbox.
    return dict(*args, **kwargs)


class _Generation(Extension):
    """`{% generation %}…{% endgeneration %}`: a scope of its own, as in transformers, and nothing else."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja declares it

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(line)


def _holds(node: nodes.Node, said: set[str]) -> bool:
    """Whether an expression involves content."""
    if isinstance(node, nodes.Name):
        return node.name in said
    if isinstance(node, nodes.Getattr):
        return node.attr in said or _holds(node.node, said)
    if isinstance(node, nodes.Getitem):
        key = node.arg.value if isinstance(node.arg, nodes.Const) else None
        return key in said or _holds(node.node, said)
    if isinstance(node, nodes.CondExpr):
        return _holds(node.expr1, said) or (node.expr2 is not None and _holds(node.expr2, said))
    if isinstance(node, nodes.Filter | nodes.Call):
        return node.node is not None and _holds(node.node, said)
    return isinstance(node, nodes.Add | nodes.Concat | nodes.Or) and any(
        _holds(child, said) for child in node.iter_child_nodes()
    )


def _find_inspections(tree: nodes.Template, said: set[str]) -> Iterator[Inspection]:
    kinds = (nodes.Filter, nodes.Test, nodes.Getitem, nodes.Compare, nodes.Call)
    for node in tree.find_all(kinds):
        subjects: list[nodes.Node] = []
        name = ""
        if isinstance(node, nodes.Compare):
            subjects = [node.expr, *(operand.expr for operand in node.ops)]
        elif isinstance(node, nodes.Getitem):
            if isinstance(node.arg, nodes.Slice):
                subjects = [node.node]
        elif isinstance(node, nodes.Call):
            if isinstance(node.node, nodes.Getattr) and node.node.attr not in _HARMLESS_METHODS:
                subjects, name = [node.node.node], node.node.attr
        elif isinstance(node, nodes.Filter | nodes.Test) and node.node is not None and node.name not in _HARMLESS:
            subjects, name = [node.node], node.name
        if any(_holds(subject, said) for subject in subjects):
            words = tuple(c.value for c in node.find_all(nodes.Const) if isinstance(c.value, str) and c.value.strip())
            yield Inspection(node.lineno, _write_source(node), words, name in _STRIPS)


def _write_source(node: nodes.Node | None) -> str:
    """An expression approximately as written in the template."""
    if isinstance(node, nodes.Filter | nodes.Test):
        arguments = f"({_join_sources(node.args)})" if node.args else ""
        return f"{_write_source(node.node)} {'|' if isinstance(node, nodes.Filter) else 'is'} {node.name}{arguments}"
    if isinstance(node, nodes.Call):
        return f"{_write_source(node.node)}({_join_sources(node.args)})"
    if isinstance(node, nodes.Compare):
        return _write_source(node.expr) + "".join(
            f" {_OPERATORS.get(o.op, o.op)} {_write_source(o.expr)}" for o in node.ops
        )
    if isinstance(node, nodes.Slice):
        return ":".join("" if bound is None else _write_source(bound) for bound in (node.start, node.stop))
    return _describe_place(node)


def _join_sources(arguments: Sequence[nodes.Node]) -> str:
    return ", ".join(map(_write_source, arguments))


def _describe_place(node: nodes.Node | None) -> str:
    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Const):
        return repr(node.value)
    if isinstance(node, nodes.Getattr):
        return f"{_write_source(node.node)}.{node.attr}"
    if isinstance(node, nodes.Getitem):
        return f"{_write_source(node.node)}[{_write_source(node.arg)}]"
    return f"-{_write_source(node.node)}" if isinstance(node, nodes.Neg) else "…"
