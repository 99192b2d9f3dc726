"""`ferrule policy`: what the policy says of a call and why, and what the user trusted and allowed for good."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line
from ferrule._util.word_folding import fold_listed
from ferrule.cli.options import AsJson, PolicyFile, ToolFolders, Yes
from ferrule.errors import SettingsError

policy = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Explain and check policies, and trust the files of projects.",
)


@policy.command("explain")
def _explain(  # noqa: PLR0913 - the options of the command
    command: Annotated[str | None, typer.Argument(metavar="[COMMAND]", help="A command line, as bash gets it.")] = None,
    *,
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="A call of this tool instead.")] = None,
    arguments: Annotated[str, typer.Option(metavar="JSON", help="The arguments of that call.")] = "{}",
    journal: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Judge the calls that this journal recorded instead.")
    ] = None,
    tools: ToolFolders = None,
    file: PolicyFile = None,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="The profile: plan, ask, accept-edits, auto or all.")
    ] = None,
    no_project: Annotated[
        bool, typer.Option("--no-project", help="Leave out this folder's ferrule.toml and saved answers.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Explain which rule decides on a call here, and why.

    Nothing is run. The policy is that of `ferrule code` here: the user's or --policy, with this project's. The exit
    status is 0 if the call is allowed, 1 if it is asked about or denied; for --journal 1 if the policy says something
    else of a call than the one in force then.
    """
    from ferrule.cli.policy_explain import explain_call, explain_journal, make_policy_in_force
    from ferrule.errors import SettingsError

    if sum(one is not None for one in (command, tool, journal)) != 1:
        raise SettingsError("give one of a command line, --tool NAME with --arguments JSON, and --journal FILE")
    in_force = make_policy_in_force(file, profile, with_project=not no_project)
    if journal is not None:
        raise typer.Exit(explain_journal(journal, in_force, as_json))
    raise typer.Exit(explain_call(command, tool, arguments, tools or (), in_force, as_json))


@policy.command("check")
def _check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Policies, or files named ferrule.toml.")],
    tools: ToolFolders = None,
) -> None:
    """Check files of rules, and the examples in them.

    The names of tools and arguments are checked too. The exit status is 2 if a file is wrong. A name that none of the
    coding agent's tools, of this project's and of --tools has is only a warning: a server may have it.
    """
    from ferrule.cli.policy_explain import check_files

    check_files(files, tools or ())


Folder = Annotated[Path, typer.Argument(metavar="[FOLDER]", help="The project; by default this folder.")]


@policy.command("trust")
def _trust(folder: Folder = Path(), yes: Yes = False) -> None:
    """Show what a project's files would allow, and trust them.

    Its ferrule.toml may allow calls and start servers, its tool files are run. They are trusted as they are now: a file
    that changes later isn't trusted any more.
    """

    trust_project(folder, yes)


@policy.command("list")
def _list(as_json: AsJson = False) -> None:
    """List the trusted projects, and what was allowed for good in each."""

    list_records(as_json)


@policy.command("forget")
def _forget(
    folder: Folder = Path(),
    answer: Annotated[
        int | None,
        typer.Option(min=1, metavar="NUMBER", help='Only this "always" answer, by its number in `policy list`.'),
    ] = None,
) -> None:
    """Stop trusting a project, and drop what was allowed for good."""

    forget_project(folder, answer)


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
