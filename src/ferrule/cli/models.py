"""`ferrule models`: what can be named, and what of it is ready."""

from __future__ import annotations

import typer

from ferrule.cli.options import AsJson


def models(as_json: AsJson = False) -> None:
    """List the models that can be named, and the providers: address, key, package. Nobody is asked."""
    from ferrule.cli.list_tools import print_json
    from ferrule.cli.model_list import model_data, model_lines

    if as_json:
        print_json(model_data())
    else:
        for line in model_lines():
            typer.echo(line)
