"""Changes a parsed chat template so that its loops over the messages note their iterations (`recording.py`).

This file imports jinja2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

from jinja2 import Environment, nodes

from ferrule.dialects.template.recording import begin_loop, count_up_to_one, finish_iteration, has_next, note_answer

# No template can write the names of these filters.
_BEGIN, _FINISH, _COUNT = "begin loop", "finish iteration", "count up to one"
_HAS_NEXT, _NOTE_ANSWER = "has next", "note answer"
_IS_LAST = nodes.Getattr(nodes.Name("loop", "load"), "last", "load")
# These filters return iterators: a variable that holds one changes when it is read.
_LAZY = frozenset(
    {"map", "select", "reject", "selectattr", "rejectattr", "unique", "items", "reverse", "batch", "slice"}
)
# What differs between conversations, or changes while one is rendered.
_VARYING = ("messages", "tools", "strftime_now", "add_generation_prompt", "namespace", "joiner", "cycler", "lipsum")


def parse_marked_template(source: str, environment: Environment) -> nodes.Template:
    """A template whose loops over messages, if those are `RecordedMessages`, note their iterations."""
    environment.filters |= {_BEGIN: begin_loop, _FINISH: finish_iteration, _COUNT: count_up_to_one}
    environment.filters |= {_HAS_NEXT: has_next, _NOTE_ANSWER: note_answer}
    tree = environment.parse(source)
    for comparison in tree.find_all(nodes.Compare):
        comparison.expr = _simplify_count(comparison)
    if not any(_holds_iterator(assignment.node) for assignment in tree.find_all(nodes.Assign)):
        prefix = "_loop"
        while prefix in source:
            prefix += "_"
        tree.body = list(_mark_loops(tree.body, prefix, _find_last_loop(tree)))
    tree.set_environment(environment)
    return tree


def _simplify_count(comparison: nodes.Compare) -> nodes.Expr:
    """What is compared: `messages | length > 0` asks no more than `messages` does."""
    counted, (operand, *more) = comparison.expr, comparison.ops
    is_with_zero = not more and operand.op in ("eq", "ne", "gt") and operand.expr == nodes.Const(0)
    if is_with_zero and isinstance(counted, nodes.Filter) and counted.name in ("length", "count"):
        return nodes.Filter(counted.node, _COUNT, [], [], None, None)
    return counted


def _find_last_loop(tree: nodes.Template) -> nodes.Node | None:
    """The last loop, if only what follows it depends on whether a prompt is requested, and on nothing else."""
    at = max((at for at, node in enumerate(tree.body) if _can_be_marked(node)), default=-1)
    if at < 0:
        return None
    stored = [name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"]
    stored += [macro.name for macro in tree.find_all(nodes.Macro)]
    varying = {*stored, *_VARYING}
    for node in tree.body[:at]:  # `enable_thinking = enable_thinking if enable_thinking is defined else true`
        if isinstance(node, nodes.Assign) and isinstance(node.target, nodes.Name):
            name = node.target.name
            if stored.count(name) == 1 and not (_collect_names([node.node]) - {name}) & varying:
                varying -= {name} - {*_VARYING}
    before, after = _collect_names(tree.body[: at + 1]), _collect_names(tree.body[at + 1 :])
    if "add_generation_prompt" in before or after & (varying - {"add_generation_prompt"}):
        return None
    return tree.body[at]


def _collect_names(body: list[nodes.Node]) -> set[str]:
    return {name.name for node in body for name in (*node.find_all(nodes.Name), node) if isinstance(name, nodes.Name)}


def _holds_iterator(value: nodes.Node) -> bool:
    if isinstance(value, nodes.Filter):
        return value.name in _LAZY
    nested = isinstance(
        value, nodes.CondExpr | nodes.Or | nodes.And | nodes.List | nodes.Tuple | nodes.Dict | nodes.Pair
    )
    return nested and any(map(_holds_iterator, value.iter_child_nodes()))


def _mark_loops(body: list[nodes.Node], name: str, last: nodes.Node | None) -> Iterator[nodes.Node]:
    """The nodes, with marks in loops that aren't inside of another loop, a macro or a captured block."""
    for number, node in enumerate(body):
        own = f"{name}_{number}"
        if isinstance(node, nodes.If):
            node.body = list(_mark_loops(node.body, f"{own}_if", None))
            node.elif_ = [one for one in _mark_loops([*node.elif_], f"{own}_elif", None) if isinstance(one, nodes.If)]
            node.else_ = list(_mark_loops(node.else_, f"{own}_else", None))
        elif _can_be_marked(node):
            recorded = nodes.Filter(node.iter, _BEGIN, [nodes.Const(node is last)], [], None, None)
            yield nodes.Assign(nodes.Name(own, "store"), recorded, lineno=node.lineno)
            node.iter = nodes.Name(own, "load")
            end = nodes.Filter(nodes.Name(own, "load"), _FINISH, [], [], None, None)
            node.body = [*(_rewrite_last(one, own) for one in node.body), nodes.Output([end], lineno=node.lineno)]
        yield node


def _rewrite_last(node: nodes.Node, loop: str) -> Any:
    """The node with each `loop.last or answer` changed: if the answer is true, the next message makes no difference."""
    if isinstance(node, nodes.For | nodes.Macro | nodes.CallBlock):
        return node  # there it is another loop
    for name, value in node.iter_fields():
        if isinstance(value, nodes.Node):
            setattr(node, name, _rewrite_last(value, loop))
        elif isinstance(value, list):
            value[:] = [_rewrite_last(one, loop) if isinstance(one, nodes.Node) else one for one in value]
    if not isinstance(node, nodes.Or) or node.left != _IS_LAST:
        return node
    own = nodes.Name(loop, "load")
    answer = nodes.Filter(node.right, _NOTE_ANSWER, [own], [], None, None)
    return nodes.CondExpr(nodes.Filter(own, _HAS_NEXT, [], [], None, None), answer, node)


def _can_be_marked(node: nodes.Node) -> TypeGuard[nodes.For]:
    return isinstance(node, nodes.For) and not (node.test or node.else_ or node.recursive)
