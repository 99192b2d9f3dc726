"""`ferrule functions`: find a function for a question in plain words, or show all that is known of one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from ferrule._util.terminal_text import escape_text
from ferrule.cli.options import AsJson

if TYPE_CHECKING:
    from ferrule.analysis.functions.document import FunctionDoc
    from ferrule.analysis.functions.repository import FunctionRepository

_MOST = 100


def functions(
    question: Annotated[
        str | None, typer.Argument(metavar="[QUESTION]", help="What the function should do, in plain words.")
    ] = None,
    path: Annotated[
        str | None, typer.Option("--path", metavar="NAME", help="Show all of one function, such as numpy.mean.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="How many to list.", min=1, max=_MOST)] = 5,
    as_json: AsJson = False,
) -> None:
    """Find functions of the packages that an analysis computes with. Nothing is sent anywhere."""
    from ferrule._util.background import run_synchronously
    from ferrule.errors import SettingsError
    from ferrule.session.terminal.output import print_json

    if (path is None) == (question is None):
        raise SettingsError('give a question ("test whether two means differ") or --path NAME, one of them')
    if path is None and not (question or "").strip():
        raise SettingsError("the question is empty: say what the function should do")
    found = run_synchronously(_find(question, path, limit))
    if as_json:
        listed = [document.to_json() for document in found]
        print_json(listed if path is None else listed[0])
    elif path is not None:
        typer.echo(escape_text(found[0].render()))
    else:
        _print_functions(found)


async def _find(question: str | None, path: str | None, limit: int) -> list[FunctionDoc]:
    from ferrule.analysis.functions.repository import STEPS, FunctionRepository
    from ferrule.cli.progress import ProgressBar, open_progress_bar

    bars: list[ProgressBar] = []

    def show(done: int, note: str) -> None:
        # A cached index is opened at once: no bar then.
        if not bars:
            bars.append(closing.enter_context(open_progress_bar("building the index", STEPS)))
        bars[0](done, note)

    with ExitStack() as closing:
        repository = await FunctionRepository.open(on_progress=show)
    async with repository:
        if path is None:
            return repository.search(question or "", limit)
        return [await _look_up(repository, path)]


async def _look_up(repository: FunctionRepository, path: str) -> FunctionDoc:
    """Raises `SettingsError` with the nearest names if there is no such function."""
    from ferrule.errors import SettingsError

    if not path.strip():
        raise SettingsError("--path names no function: write its whole path, such as numpy.mean")
    found = await repository.look_up(path)
    if found is None:
        near = repository.find_nearest(path)
        advice = f"; did you mean {' or '.join(near)}?" if near else ": write its whole path, such as numpy.mean"
        raise SettingsError(f"no function {path} is installed{advice}")
    return found


def _print_functions(found: list[FunctionDoc]) -> None:
    """Print each function's path and purpose on two lines."""
    if not found:
        typer.echo("No function matches. Other words may: name what goes in and what should come out.")
    for document in found:
        typer.echo(escape_text(f"{document.path}\n  {document.purpose}"))
