"""`ferrule dialects`: the families of models whose calls are read and written."""

from __future__ import annotations

import typer

from ferrule.cli.options import AsJson


def dialects(as_json: AsJson = False) -> None:
    """List the families of models whose calls are read and written."""
    import json

    from ferrule.cli.dialect_table import families_table, family_json
    from ferrule.dialects.catalogue import families

    known = list(families().values())
    if as_json:
        typer.echo(json.dumps([family_json(family) for family in known], ensure_ascii=False, indent=2))
        return
    families_table(known)
