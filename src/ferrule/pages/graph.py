"""A graph as SVG, in layers from the top down: what a node needs is above it.

The layers are those of the longest paths, an edge over several layers bends through each of them, and the order within
a layer is that of the mean of the neighbours above and below, repeated (Sugiyama, Tagawa, Toda 1981).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from ferrule.pages.elements import element

_WIDTH: Final = 184
_LINE: Final = 17
_GAP: Final = 22
_BEND: Final = 24
_RISE: Final = 44
_MARGIN: Final = 8
_SWEEPS: Final = 8


@dataclass(frozen=True, slots=True)
class Node:
    """A box: a title, lines below it, the class that gives its colour, and the place in the page that it links to."""

    id: str
    title: str
    lines: tuple[str, ...] = ()
    class_: str = ""
    href: str | None = None
    needs: tuple[str, ...] = ()


@dataclass(slots=True)
class _Slot:
    """A node's place, or a bend's: where an edge passes a layer."""

    layer: int
    node: Node | None
    above: list[_Slot]
    below: list[_Slot]
    x: float = 0.0


def draw_graph(nodes: Sequence[Node], label: str) -> Markup:
    """The graph. Needs that are no node are left out. Raises `graphlib.CycleError` if it has a cycle."""
    layers = _order_layers(_make_layers(nodes))
    _place_slots(layers)
    box = _find_height(nodes)
    height = _MARGIN * 2 + len(layers) * (box + _RISE) - _RISE
    width = max((slot.x + _find_width(slot) / 2 for layer in layers for slot in layer), default=0) + _MARGIN
    tip = element("path", d="M0,0 L7,3 L0,6 z")
    marker = element("marker", tip, id="graph-tip", markerWidth=7, markerHeight=7, refX=6, refY=3, orient="auto")
    drawn = [element("defs", marker), *_draw_edges(layers, box), *_draw_nodes(layers, box)]
    view = f"0 0 {width:.0f} {height:.0f}"
    svg = element(
        "svg",
        element("title", label),
        *drawn,
        role="img",
        class_="graph",
        width=round(width),
        height=round(height),
        viewBox=view,
    )
    return element("div", svg, class_="scrolled")


def _make_layers(nodes: Sequence[Node]) -> list[list[_Slot]]:
    known = {node.id: node for node in nodes}
    needs = {node.id: [need for need in dict.fromkeys(node.needs) if need in known] for node in nodes}
    depth: dict[str, int] = {}
    for name in TopologicalSorter(needs).static_order():
        depth[name] = 1 + max((depth[need] for need in needs[name]), default=-1)
    layers: list[list[_Slot]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
    slots = {node.id: _Slot(depth[node.id], node, [], []) for node in nodes}
    for name, slot in slots.items():
        layers[depth[name]].append(slot)
    for name, slot in slots.items():
        for need in needs[name]:
            upper = slots[need]
            for layer in range(upper.layer + 1, slot.layer):
                bend = _Slot(layer, None, [], [])
                layers[layer].append(bend)
                _connect(upper, bend)
                upper = bend
            _connect(upper, slot)
    return layers


def _connect(upper: _Slot, lower: _Slot) -> None:
    upper.below.append(lower)
    lower.above.append(upper)


def _order_layers(layers: list[list[_Slot]]) -> list[list[_Slot]]:
    """The layers with few crossings: the best order of some sweeps down and up."""
    best, fewest = [list(layer) for layer in layers], _count_crossings(layers)
    for sweep in range(_SWEEPS):
        is_downward = sweep % 2 == 0
        ordered = layers if is_downward else layers[::-1]
        for fixed, layer in pairwise(ordered):
            _sort_by_neighbours(layer, fixed, is_downward=is_downward)
        crossings = _count_crossings(layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    return best


def _sort_by_neighbours(layer: list[_Slot], fixed: list[_Slot], *, is_downward: bool) -> None:
    at = {id(slot): index for index, slot in enumerate(fixed)}
    own = {id(slot): index for index, slot in enumerate(layer)}

    def find_middle(slot: _Slot) -> float:
        neighbours = [at[id(other)] for other in (slot.above if is_downward else slot.below)]
        return sum(neighbours) / len(neighbours) if neighbours else own[id(slot)]

    layer.sort(key=find_middle)


def _count_crossings(layers: list[list[_Slot]]) -> int:
    crossings = 0
    for upper, lower in pairwise(layers):
        at = {id(slot): index for index, slot in enumerate(lower)}
        ends = [end for slot in upper for end in sorted(at[id(below)] for below in slot.below)]
        crossings += sum(first > second for index, first in enumerate(ends) for second in ends[index + 1 :])
    return crossings


def _place_slots(layers: list[list[_Slot]]) -> None:
    """The middle of each slot: the layers are centred, then drawn towards their neighbours as far as there is room."""
    widths = [sum(map(_find_width, layer)) + _GAP * (len(layer) - 1) for layer in layers]
    for layer, width in zip(layers, widths, strict=True):
        at = _MARGIN + (max(widths) - width) / 2
        for slot in layer:
            slot.x = at + _find_width(slot) / 2
            at += _find_width(slot) + _GAP
    for sweep in range(4):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            for index, slot in enumerate(layer):
                neighbours = slot.above if sweep % 2 == 0 else slot.below
                if neighbours:
                    left, right = _find_room(layer, index)
                    slot.x = max(left, min(right, sum(other.x for other in neighbours) / len(neighbours)))


def _find_room(layer: list[_Slot], index: int) -> tuple[float, float]:
    """From where to where a slot's middle may be; the last one has all the room to the right."""
    left, right = _MARGIN + _find_width(layer[index]) / 2, math.inf
    if index:
        left = layer[index - 1].x + _find_distance(layer[index - 1], layer[index])
    if index + 1 < len(layer):
        right = layer[index + 1].x - _find_distance(layer[index], layer[index + 1])
    return left, right


def _find_distance(first: _Slot, second: _Slot) -> float:
    return (_find_width(first) + _find_width(second)) / 2 + _GAP


def _find_width(slot: _Slot) -> float:
    return _BEND if slot.node is None else _WIDTH


def _find_height(nodes: Sequence[Node]) -> int:
    return 16 + _LINE * max((1 + len(node.lines) for node in nodes), default=1)


def _find_top(slot: _Slot, height: int) -> float:
    return _MARGIN + slot.layer * (height + _RISE)


def _draw_edges(layers: list[list[_Slot]], height: int) -> Iterator[Markup]:
    for slot in (slot for layer in layers for slot in layer if slot.node):
        for lower in slot.below:
            path = f"M{slot.x:.0f},{_find_top(slot, height) + height:.0f}"
            upper, at = slot, lower
            while True:
                start, end = _find_top(upper, height) + height, _find_top(at, height)
                middle = (start + end) / 2
                stop = end - (2 if at.node else 0)
                path += f" C{upper.x:.0f},{middle:.0f} {at.x:.0f},{middle:.0f} {at.x:.0f},{stop:.0f}"
                if at.node:
                    break
                path += f" L{at.x:.0f},{_find_top(at, height) + height:.0f}"
                upper, at = at, at.below[0]
            yield element("path", d=path, marker_end="url(#graph-tip)")


def _draw_nodes(layers: list[list[_Slot]], height: int) -> Iterator[Markup]:
    for slot in (slot for layer in layers for slot in layer):
        if slot.node is None:
            continue
        left, top = slot.x - _WIDTH / 2, _find_top(slot, height)
        lines = [
            element(
                "text",
                _cut(line),
                x=round(left + 10),
                y=round(top + 21 + number * _LINE),
                class_="quiet" if number else None,
            )
            for number, line in enumerate((slot.node.title, *slot.node.lines))
        ]
        box = element("rect", x=round(left), y=round(top), width=_WIDTH, height=height, rx=6)
        group = element("g", box, *lines, class_=slot.node.class_ or None)
        yield element("a", group, href=slot.node.href) if slot.node.href else group


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 25 else f"{line[:24]}…"
