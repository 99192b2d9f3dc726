"""`ferrule models local:FOLDER`: what is chosen for a checkpoint, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ferrule.models.checkpoints.description import CheckpointDescription

_WIDTH = 13


def show_checkpoint(name: str, options: Sequence[str], as_json: bool) -> None:
    """Print the description of a checkpoint. The exit status is 1 if it can't be loaded as it is.

    Raises `ModelError` if there is none of that name, and `SettingsError`.
    """
    from ferrule.cli.settings import read_model_options
    from ferrule.models.checkpoints.description import describe_checkpoint
    from ferrule.session.terminal.output import print_json

    found = describe_checkpoint(name.removeprefix("local:"), read_model_options(options))
    if as_json:
        print_json(asdict(found))
    else:
        for line in format_checkpoint(found):
            typer.echo(line)
    if found.problems:
        raise typer.Exit(1)


def format_checkpoint(found: CheckpointDescription) -> Iterator[str]:
    """Yield lines for people; what isn't known has none."""
    from ferrule._util.terminal_text import escape_line

    yield escape_line(found.name)
    for label, text in _list_rows(found):
        if text:
            yield f"  {label:{_WIDTH}}{escape_line(text)}"
    for problem in found.problems:
        yield f"  {'problem':{_WIDTH}}{escape_line(problem)}"


def _list_rows(found: CheckpointDescription) -> Iterator[tuple[str, str]]:
    yield "family", _join(found.family, found.architecture and f"({found.architecture})")
    yield "weights", _describe_weights(found)
    yield "engine", _join(found.engine and f"{found.engine}:", found.engine_reason)
    yield "computes", f"in {found.dtype} on {found.device or 'the device that torch finds'}" if found.dtype else ""
    yield "context", f"{found.context_length:,} tokens" if found.context_length else ""
    yield "tokenizer", _join(found.tokenizer, f"of {found.vocabulary_size:,} tokens" if found.vocabulary_size else None)
    yield "template", found.template or ""
    yield "notation", ": ".join(filter(None, (found.notation, found.notation_reason)))
    yield "stops at", ", ".join(f"{name} ({token})" for name, token in found.stops.items())
    yield "a call", (found.call or "").replace("\n", "\\n")
    yield "constrained", _describe_constraints(found)
    yield "can", ", ".join(_list_abilities(found))


def _describe_constraints(found: CheckpointDescription) -> str:
    if found.constrains_calls is None:
        return ""
    return "calls can be held to their tools' schemas" if found.constrains_calls else f"no: {found.constrains_reason}"


def _describe_weights(found: CheckpointDescription) -> str:
    if found.weights is None or found.weights_bytes is None:
        return ""
    files = "" if found.weights_files == 1 else f" in {found.weights_files} files"
    return f"{found.weights:,}{files}, {_format_bytes(found.weights_bytes)}, {', '.join(found.weights_types)}"


def _format_bytes(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1e3:.1f} kB"


def _list_abilities(found: CheckpointDescription) -> Iterator[str]:
    if found.tools is None:
        return
    yield "no tools" if not found.tools else "tools, several calls at once" if found.parallel_calls else "tools"
    yield "reasoning" if found.reasoning else "no reasoning"
    yield "a system message" if found.system else "no system message"


def _join(*parts: str | None) -> str:
    return " ".join(filter(None, parts))
