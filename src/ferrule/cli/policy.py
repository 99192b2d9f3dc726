"""`ferrule policy`: what the policy says of a call and why, and what the user trusted and allowed for good."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferrule.cli.options import AsJson, PolicyFile, ToolFolders, Yes

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
    from ferrule.cli.policy_records import trust_project

    trust_project(folder, yes)


@policy.command("list")
def _list(as_json: AsJson = False) -> None:
    """List the trusted projects, and what was allowed for good in each."""
    from ferrule.cli.policy_records import list_records

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
    from ferrule.cli.policy_records import forget_project

    forget_project(folder, answer)
