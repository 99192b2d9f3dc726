"""`ferrule tools`: what is offered, and what is wrong with files that offer nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferrule.cli.options import AsJson, Plugins

if TYPE_CHECKING:
    from ferrule.toolspec import Annotations, ToolSpec

_HINTS = {
    "read_only": ("reads only", "writes"),
    "destructive": ("destructive", "not destructive"),
    "idempotent": ("idempotent", "not idempotent"),
    "open_world": ("open world", "closed world"),
}


def tools(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[check] [FOLDER]...", help="Folders with *_tool.py files, or `python` or `shell`."),
    ] = None,
    plugins: Plugins = False,
    as_json: AsJson = False,
) -> None:
    """List the tools on offer.

    With `check`, report what is wrong with files that offer none; the exit status is 1 where there are any.
    """
    from ferrule.cli.offer import offered

    words = words or []
    if words[:1] == ["check"]:
        _check([Path(word) for word in words[1:]] or [Path()], as_json)
        return
    specs = offered((Path(word) for word in words), plugins).specs
    if as_json:
        print_json([tool_data(spec) for spec in specs])
        return
    for spec in specs:
        typer.echo("\n".join(tool_lines(spec)))


def _check(folders: list[Path], as_json: bool) -> None:
    from ferrule.cli.checking import check

    found = check(folders)
    if as_json:
        problems = [{"path": str(problem.path), "reason": problem.reason} for problem in found.problems]
        print_json({"tools": list(found.names), "problems": problems})
    else:
        for problem in found.problems:
            typer.echo(str(problem))
        count = f"{len(found.names)} tool{'' if len(found.names) == 1 else 's'}"
        typer.echo(f"{count} on offer, {len(found.problems) or 'no'} problem{'' if len(found.problems) == 1 else 's'}")
    if found.problems:
        raise typer.Exit(1)


def tool_lines(spec: ToolSpec) -> list[str]:
    """A tool for people: its name and hints, what it is for, its parameters."""
    from ferrule.cli.parameters import parameter_lines
    from ferrule.execution.showing import visible

    notes = [f"from {spec.origin}", *_hints(spec.annotations)]
    if spec.approval is not None:
        notes.append(f"{spec.approval} asks")
    description = [f"  {visible(line.strip())}" for line in spec.description.splitlines() if line.strip()]
    return [f"{spec.name}  ({', '.join(notes)})", *description, *parameter_lines(spec.parameters)]


def _hints(annotations: Annotations) -> list[str]:
    said = {name: getattr(annotations, name) for name in _HINTS}
    return [_HINTS[name][0 if value else 1] for name, value in said.items() if value is not None]


def tool_data(spec: ToolSpec) -> dict[str, Any]:
    """A tool for programs."""
    return {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "annotations": {name: getattr(spec.annotations, name) for name in _HINTS},
        "origin": spec.origin,
        "approval": spec.approval,
    }


def print_json(value: object) -> None:
    """Write a value to stdout as JSON."""
    import json

    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))
