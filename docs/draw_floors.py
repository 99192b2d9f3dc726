"""The floors of the package as a picture, drawn from its imports into `docs/floors.svg`: `python docs/draw_floors.py`.

A module imports only from floors below its own, or from its own room; `tests/test_project.py` holds that. An arrow
leads from a room to one that it imports. Where another way leads there too, through rooms between them, the direct
arrow is left out, or nothing could be made out (the transitive reduction of the graph: Aho, Garey, Ullman 1972).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ferrule"
PICTURE = Path(__file__).with_name("floors.svg")

FLOORS: dict[int, tuple[str, ...]] = {
    11: ("__main__",),
    10: ("cli",),
    9: ("analysis", "coding", "images", "serving", "training"),
    8: ("session",),
    7: ("agent", "embedded", "mcp", "store"),
    6: ("models",),
    5: ("builtin_tools", "engines", "execution", "tokens"),
    4: ("formats", "pages"),
    3: ("dialects", "sandbox"),
    2: ("arithmetic", "tools"),
    1: ("blobs", "capabilities", "conversation", "errors", "events", "media", "toolspec", "transcript"),
    0: ("_util",),
}
"""The rooms of each floor. Floor 1 is made of single files, which may import each other."""
FLOOR_OF = {room: floor for floor, rooms in FLOORS.items() for room in rooms}

_PURPOSE = {
    10: "commands",
    9: "fronts",
    8: "conversations with a person",
    7: "the loop, the embedded model, conversations, servers",
    6: "what writes messages",
    5: "calls are run, tokens are made",
    4: "files of others",
    3: "how models write, where code runs",
    2: "functions become tools",
    1: "the words, as data",
    0: "helpers",
}
_WIDTH, _ROW, _BOX, _LEFT = 1040, 84, 40, 270


def module_name(path: Path) -> str:
    """The dotted name of a source file."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The folder or file, directly in the package, that a module belongs to."""
    return module.split(".")[1]


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def find_imports(module: str, *, for_types: bool = True) -> tuple[str, ...]:
    """The modules of ferrule that a module imports; `for_types`: also those that only type checkers import."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: list[str] = []
    for node in _find_import_statements(ast.parse(path.read_text(encoding="utf-8")), for_types):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.partition(".")[0] == "ferrule"]
        else:
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            if source.partition(".")[0] == "ferrule":
                names = (f"{source}.{alias.name}" for alias in node.names)
                found += [name if name in MODULES else source for name in names]
    return tuple(found)


def _find_import_statements(tree: ast.AST, for_types: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Those of a module or a statement, also inside functions."""
    is_for_types = isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.unparse(tree.test)
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        if name == "body" and is_for_types and not for_types:
            continue
        inner = getattr(tree, name, [])
        for node in inner if isinstance(inner, list) else []:  # a conditional expression has one node
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield node
            else:
                yield from _find_import_statements(node, for_types)


def room_imports() -> dict[str, set[str]]:
    """For each room that there is, the other rooms that it imports, also inside functions."""
    rooms: dict[str, set[str]] = {room_of(module): set() for module in MODULES if module != "ferrule"}
    for module in MODULES:
        if module != "ferrule":
            targets = {room_of(target) for target in find_imports(module) if target != "ferrule"}
            rooms[room_of(module)] |= targets - {room_of(module)}
    return rooms


def reduce_transitively(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without the edges that a longer way replaces. It has no circles but among the files of floor 1."""
    return {
        room: {
            target
            for target in targets
            if not any(_reaches(graph, other, target) for other in targets - {target} if FLOOR_OF[other] != 1)
        }
        for room, targets in graph.items()
    }


def _reaches(graph: dict[str, set[str]], start: str, goal: str) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        for target in graph[waiting.pop()] - seen:
            if target == goal:
                return True
            seen.add(target)
            waiting.append(target)
    return False


@dataclass(frozen=True, slots=True)
class _Box:
    x: float
    y: float
    width: float


def _place_boxes(rooms: set[str]) -> dict[str, _Box]:
    """One row a floor, from the top down; the rooms of a floor share its width."""
    placed: dict[str, _Box] = {}
    rows = [(floor, [room for room in names if room in rooms]) for floor, names in FLOORS.items()]
    for row, (_, names) in enumerate((floor, names) for floor, names in rows if names):
        step = (_WIDTH - _LEFT) / len(names)
        width = min(step - 12, 150)
        for column, room in enumerate(names):
            placed[room] = _Box(_LEFT + column * step + (step - width) / 2, 16 + row * _ROW, width)
    return placed


def draw() -> str:
    """The picture as SVG: a row of boxes a floor, with the number of its files in each box, and the arrows."""
    graph = {room: targets for room, targets in room_imports().items() if room != "__main__"}
    boxes = _place_boxes(set(graph))
    lines = [*_draw_floors(boxes), *_draw_arrows(graph, boxes), *_draw_boxes(boxes)]
    height = max(box.y for box in boxes.values()) + _BOX + 16
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" font-family="sans-serif">'
    tip = '<marker id="tip" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">'
    marker = f'<defs>{tip}<path d="M0,0 L7,3 L0,6 z" fill="#8a94a6"/></marker></defs>'
    ground = f'<rect width="{_WIDTH}" height="{height:.0f}" fill="#ffffff"/>'
    return "\n".join([head, marker, ground, *lines, "</svg>"]) + "\n"


def _draw_floors(boxes: dict[str, _Box]) -> Iterator[str]:
    for floor, y in sorted({(FLOOR_OF[room], box.y) for room, box in boxes.items()}):
        text = escape(f"{floor}  {_PURPOSE[floor]}")
        yield f'<text x="16" y="{y + 25:.0f}" font-size="13" fill="#5b6575">{text}</text>'


def _draw_arrows(graph: dict[str, set[str]], boxes: dict[str, _Box]) -> Iterator[str]:
    for room, targets in sorted(reduce_transitively(graph).items()):
        for target in sorted(targets):
            start, end = boxes[room], boxes[target]
            if start.y >= end.y:
                continue
            x1, y1 = start.x + start.width / 2, start.y + _BOX
            x2, y2 = end.x + end.width / 2, end.y - 2
            bend = (y2 - y1) / 2
            path = f"M{x1:.0f},{y1:.0f} C{x1:.0f},{y1 + bend:.0f} {x2:.0f},{y2 - bend:.0f} {x2:.0f},{y2:.0f}"
            yield f'<path d="{path}" fill="none" stroke="#b4bccb" stroke-width="1.3" marker-end="url(#tip)"/>'


def _draw_boxes(boxes: dict[str, _Box]) -> Iterator[str]:
    for room, box in boxes.items():
        middle = box.x + box.width / 2
        yield (
            f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{_BOX}" rx="6" '
            'fill="#eef3fb" stroke="#5b7bb2"/>'
        )
        name = room if (PACKAGE / room).is_dir() else f"{room}.py"
        size = 13 if box.width > 110 else 11
        yield (
            f'<text x="{middle:.0f}" y="{box.y + 25:.0f}" font-size="{size}" text-anchor="middle" '
            f'fill="#1d2636">{escape(name)}</text>'
        )


if __name__ == "__main__":
    if "--help" in sys.argv[1:]:
        print(__doc__)
    else:
        PICTURE.write_text(draw(), encoding="utf-8")
        print(f"drawn: {PICTURE}")
