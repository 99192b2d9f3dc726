"""`ferrule dialects`: the model families whose calls can be read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from ferrule.cli.options import AsJson

if TYPE_CHECKING:
    from rich.table import Table

    from ferrule.dialects.family import Family

_WIDE, _WIDE_ENOUGH, _NARROW = 240, 180, 90
_TURNS_OF_A_LINE = 2


def dialects(as_json: AsJson = False) -> None:
    """List the model families whose calls can be read and written."""
    import json

    from ferrule.dialects.catalogue import load_families

    known = list(load_families().values())
    if as_json:
        typer.echo(json.dumps([family_to_json(family) for family in known], ensure_ascii=False, indent=2))
        return
    print_families(known)


def print_families(known: Sequence[Family]) -> None:
    """Print a table with one row a family; a narrow terminal shows its names and models, one below the other."""
    import textwrap

    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        # A pipe has no width, and names must not be broken across lines.
        console.width = _WIDE
    if console.width < _NARROW:
        for family in known:
            console.print(family.name, soft_wrap=True)
            turns = list_dialect_names(family)
            # In a column of a narrow table, words would be broken.
            for text in (family.models, f"turns: {', '.join(turns)}" if turns not in ((), (family.name,)) else ""):
                for line in textwrap.wrap(text, console.width - 2, break_long_words=False, break_on_hyphens=False):
                    console.print(f"  {line}", style="dim", soft_wrap=True)
    else:
        with console.capture() as capture:
            console.print(_make_table(known, has_details=console.width >= _WIDE_ENOUGH))
        # rich fills each line to the width of the table.
        for line in capture.get().splitlines():
            print(line.rstrip())
    console.print(f"{len(known)} families; each is read as it streams, and written.")
    if console.width < _WIDE_ENOUGH:
        console.print("A wider terminal and --json show the markers of calls as well.")


def _make_table(known: Sequence[Family], has_details: bool) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("family", no_wrap=True)
    detailed = ("notation", "models", "calls begin with", "reasoning", "no place for")
    for title in detailed if has_details else ("models",):
        table.add_column(title, overflow="fold")
    table.add_column("turns", no_wrap=True)
    for family in known:
        data = family_to_json(family)
        openers = " ".join(opener.replace("\n", "\\n") for opener in data["openers"]) or "(no marker)"
        losses = ", ".join(data["losses"]) or "–"
        details = (data["notation"], family.models, openers, data["reasoning"] or "–", losses)
        # A name can be copied only from one line.
        turns = ("\n" if len(data["turns"]) > _TURNS_OF_A_LINE else ", ").join(data["turns"]) or "–"
        table.add_row(family.name, *(details if has_details else (family.models,)), turns)
    return table


def list_dialect_names(family: Family) -> tuple[str, ...]:
    """List the names of the dialects that write whole conversations for a family."""
    from ferrule.dialects import list_dialects

    known = list_dialects()
    names = (family.name, *family.aliases, *(name for name, _ in family.other_turns))
    return tuple(name for name in dict.fromkeys(names) if name in known)


def family_to_json(family: Family) -> dict[str, Any]:
    """Convert a family to JSON data."""
    thinking = family.message.thinking
    return {
        "name": family.name,
        "aliases": list(family.aliases),
        "notation": type(family.syntax).__module__.rpartition(".")[2],
        "models": family.models,
        "openers": [opener.strip() for opener in family.syntax.openers],
        "reads": True,
        "writes": True,
        "reasoning": thinking.open.strip() if thinking else None,
        "losses": sorted(family.losses),
        "turns": list(list_dialect_names(family)),
        "template_rewrites_history": family.turns.rewrites_history if family.turns else None,
    }
