"""What `ferrule policy trust`, `list` and `forget` do: the user's own records of trust and of "always" answers."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import typer

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line
from ferrule._util.word_folding import fold_listed
from ferrule.errors import SettingsError


def trust_project(folder: Path, is_confirmed: bool) -> None:
    """Show and trust a project's files. Raises `SettingsError` and `OSError`."""
    from ferrule.cli.standard_input import confirm
    from ferrule.coding.tool_files import find_tool_files
    from ferrule.session.approvals import is_interactive
    from ferrule.session.project import load_project
    from ferrule.session.trust import is_trusted, trust

    project, files = load_project(folder), find_tool_files(folder)
    if project.own is not None and project.own.problem:
        raise SettingsError(project.own.problem)
    lines = [f"ferrule.toml {line}" for line in project.list_untrusted()]
    has_new_tools = files is not None and not is_trusted("tools", files.folder, files.digest)
    if has_new_tools and files is not None:
        lines += [f"{files.folder / name} is run as a part of ferrule, not contained" for name in files.names]
    if not lines:
        typer.echo(f"{escape_line(str(folder.resolve()))}: nothing that needs trust, or all of it is trusted already")
        return
    if not is_confirmed and not is_interactive():
        advice = "nobody can be asked here, so nothing was trusted; --yes trusts: "
        raise SettingsError(advice + escape_line("; ".join(lines)))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    for line in lines:
        typer.echo("\n".join(fold_listed(escape_line(line), width)))
    if not is_confirmed and not confirm("Trust these files as they are now?"):
        typer.echo("nothing was trusted")
        raise typer.Exit(1)
    if project.list_untrusted():
        project.trust()
    if has_new_tools and files is not None:
        trust("tools", files.folder, files.digest)
    typer.echo("trusted")


def list_records(as_json: bool) -> None:
    """Print what was trusted, and all saved answers. Raises `SettingsError` and `OSError`."""
    from dataclasses import asdict

    from ferrule.session.saved_rules import list_saved
    from ferrule.session.terminal.output import print_json
    from ferrule.session.trust import list_trusted

    trusted, saved = list_trusted(), list_saved()
    if as_json:
        answers = [
            {"workspace": one.workspace, "scope": one.scope, "time": one.time, "is_outdated": one.is_outdated}
            for one in saved
        ]
        print_json({"trusted": [asdict(one) for one in trusted], "always": answers})
        return
    if not trusted and not saved:
        typer.echo("nothing is trusted, and nothing is allowed for good")
    for one in trusted:
        typer.echo(escape_line(f"trusted since {_format_date(one.time)}: {one.path} ({one.digest[:12]})"))
    numbers: dict[str, int] = {}
    for answer in saved:
        numbers[answer.workspace] = numbers.get(answer.workspace, 0) + 1
        typer.echo(
            escape_line(f"always in {answer.workspace}: {numbers[answer.workspace]}. {answer.scope}")
            + f", since {_format_date(answer.time)}"
            + ("; saved without the tool's definition, so the tool asks again" if answer.is_outdated else "")
        )


def forget_project(folder: Path, answer: int | None) -> None:
    """Forget the trust and the answers for a folder, or one answer.

    Raises `SettingsError`, also if there is none, and `OSError`.
    """
    from ferrule.session.project_file import FILE_NAME
    from ferrule.session.saved_rules import remove_saved
    from ferrule.session.trust import forget

    removed = remove_saved(folder, answer)
    if answer is not None:
        if not removed:
            raise SettingsError(f"{folder.resolve()} has no answer {answer}; `ferrule policy list` lists them")
        typer.echo("removed 1 answer")
        return
    forgotten = [forget("project", folder / FILE_NAME), forget("tools", folder.resolve() / ".ferrule" / "tools")].count(
        True
    )
    if not removed and not forgotten:
        raise SettingsError(f"{folder.resolve()}: nothing was trusted or allowed for good here")
    typer.echo(f"removed {pluralize(removed, 'answer')}; {pluralize(forgotten, 'file')} no longer trusted")


def _format_date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))
