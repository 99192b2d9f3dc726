"""`ferrule code`: the coding agent in this folder, on a terminal, in lines, or for one question."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferrule._util.user_folders import find_state_folder
from ferrule.cli.options import ProfileName, change_folder, check_profile, read_server_environment
from ferrule.cli.session_options import SessionOptions, add_session_options, make_pipeline, make_renderer

if TYPE_CHECKING:
    from ferrule.agent.pipeline import Pipeline
    from ferrule.coding.checkpoints import Report, TurnChanges
    from ferrule.coding.program import CodingOptions, CodingSession
    from ferrule.session.session import SessionRunner

_WITHOUT = ("schema", "no_tools", "no_calculator", "keep")
_MARGIN = "  "
"""What stands before each line of an answer on a terminal: a call begins in the first column."""
_LISTED_TURNS = 5
_CHOOSE_MODEL = (
    "choose one by --model (such as openai:gpt-5 or ollama:qwen3-coder), FERRULE_MODEL, or `model` in the "
    "configuration file; `ferrule models` lists the providers"
)


def run_code(
    question: Annotated[
        str | None,
        typer.Argument(
            help="What to do; at a terminal, the conversation then goes on. Or undo, redo or diff: takes back, makes"
            " again or shows what the last turn changed; undo shows it first and asks."
        ),
    ] = None,
    *,
    only_print: Annotated[
        bool,
        typer.Option(
            "--print", "-p", help="Answer this one question and end; what the policy doesn't allow is refused."
        ),
    ] = False,
    _folder: Annotated[
        Path | None,
        typer.Option(
            "--cd", "-C", metavar="FOLDER", is_eager=True, callback=change_folder, help="Work in this folder."
        ),
    ] = None,
    added: Annotated[
        list[Path] | None,
        typer.Option("--add-dir", metavar="FOLDER", help="Also open this folder to the tools. May be repeated."),
    ] = None,
    profile: ProfileName = None,
    context_limit: Annotated[
        int | None, typer.Option(min=1000, metavar="TOKENS", help="The size of the model's context, if it isn't known.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="With undo and redo: overwrite what was changed since.")
    ] = False,
    options: SessionOptions,
) -> None:
    """Work on the code of this folder with a model.

    It reads, edits and runs the code. Every conversation is saved: --continue takes the last one of this folder. Exit
    status: 0 the answer is complete, 1 it isn't, 2 wrong input, 3 the provider failed, 130 Ctrl-C.
    """
    _check_system(sys.platform)
    if question in ("undo", "redo", "diff") and not only_print:
        _take_back(question, force, options)
        return
    prepare = partial(_make_options, options, added or [], profile, context_limit)
    if not only_print and not options.as_json and can_show_prompt():
        raise typer.Exit(_run_on_terminal(prepare, options, question))
    given = prepare()
    if only_print:
        _answer_once(given, options, question)
        return
    _converse_in_lines(given, options, question)


code = add_session_options(run_code, without=_WITHOUT, in_folder=True)


def _check_system(platform: str) -> None:
    """Raise `SettingsError` for a system that the agent doesn't work on."""
    from ferrule.errors import SettingsError

    if platform == "win32":
        raise SettingsError(
            "ferrule code doesn't work on Windows, which has no sandbox for commands; use the Windows Subsystem for "
            "Linux, or a container"
        )


def _take_back(action: str, force: bool, options: SessionOptions) -> None:
    """Undo, redo or show what the last turn in this folder changed; the exit status is 1 if that wasn't possible."""
    from ferrule.coding.checkpoints import find_last_changes, plan_last_undo, redo_last_turn, undo_last_turn

    if action == "diff":
        _show(find_last_changes(Path.cwd()), options.as_json)
        return
    if action == "undo":
        plan = plan_last_undo(Path.cwd(), force=force)
        # Where every file is kept, nothing is asked: the report says so, and which turn comes next.
        is_asked = plan.turn is not None and not options.yes and (plan.done or not plan.paths or options.as_json)
        if is_asked and not _confirm_undo(plan, options.as_json):
            return
    report = (undo_last_turn if action == "undo" else redo_last_turn)(Path.cwd(), force=force)
    _show(report, options.as_json)
    if not report.is_complete:
        raise typer.Exit(1)


def _show(what: Report | TurnChanges | str, as_json: bool) -> None:
    """Print what was done or changed: for people, or all of it as JSON. A text says why that can't be said."""
    from ferrule.session.terminal.output import print_json

    if isinstance(what, str):
        from ferrule.errors import SettingsError

        raise SettingsError(what)
    if as_json:
        print_json(what.to_json())
    else:
        typer.echo(str(what) or "no turn has changed a file in this folder")


def _confirm_undo(plan: Report, as_json: bool) -> bool:
    """Show what undo would do and ask; as JSON, only show it. Raises `SettingsError` where nobody can be asked."""
    from ferrule._util.pluralize import pluralize
    from ferrule.cli.standard_input import confirm
    from ferrule.coding.checkpoints import list_last_turns
    from ferrule.coding.checkpoints.report import describe_age
    from ferrule.errors import SettingsError
    from ferrule.session.approvals import is_interactive

    _show(plan, as_json)
    if as_json:
        return False
    earlier = [one for one in list_last_turns(Path.cwd()) if plan.turn and one.number < plan.turn.number]
    for one in reversed(earlier[-_LISTED_TURNS:]):
        typer.echo(f"before it: {one.describe()}, {describe_age(one.started)}, {pluralize(one.files, 'path')}")
    if not is_interactive():
        raise SettingsError("nothing was undone, since nobody can be asked here; --yes undoes it without asking")
    if confirm("Undo it?"):
        return True
    typer.echo("nothing was undone")
    return False


def _make_options(
    options: SessionOptions, added: list[Path], profile: str | None, context_limit: int | None
) -> CodingOptions:
    """Make the options of the session. Raises `FerruleError` and `OSError` for what can't be used."""
    from ferrule.cli.attachments import read_attachments
    from ferrule.coding.program import CodingOptions
    from ferrule.errors import SettingsError

    if options.trust and not options.mcp:
        raise SettingsError("--trust is for the servers of --mcp, but there are none")
    return CodingOptions(
        folder=Path.cwd(),
        model=options.model,
        load_model=partial(_load_model, options, _list_facts(options, added)),
        added=tuple(one.resolve(strict=True) for one in added),
        tools=tuple(_collect_tools(options)),
        profile=check_profile(profile),
        policy=options.policy,
        journal=options.journal,
        store=options.store,
        resume=options.resume,
        servers=tuple(options.mcp or ()),
        server_timeout=options.mcp_timeout,
        server_environment=read_server_environment(options.env, options.mcp or ()),
        trusts_servers=options.trust,
        allows_all=options.yes,
        context_limit=context_limit,
        shows_cost=options.cost,
        attachments=read_attachments(options.attachments or ()),
    )


def _list_facts(options: SessionOptions, added: Sequence[Path]) -> dict[str, str] | None:
    """List what a recording has by its name, so that it is replayed in another folder and on another day."""
    if options.record is None:
        return None
    from ferrule.coding.instructions import list_facts
    from ferrule.conversation import Conversation
    from ferrule.session.project import load_project

    folder = Path.cwd()
    folders = [one.resolve() for one in (*added, *load_project(folder).folders)]
    return list_facts(folder, Conversation().now, folders)


def _load_model(options: SessionOptions, facts: dict[str, str] | None, name: str) -> Pipeline[Any]:
    """Make the pipeline of a model. Raises `SettingsError` for the embedded one, and `ModelError`."""
    _refuse_embedded(name)
    is_same_provider = ":" in name and name.partition(":")[0] == options.model.partition(":")[0]
    if name != options.model and not is_same_provider:
        options = replace(options, base_url=_find_address(name), mode="auto", model_options=None)
    return make_pipeline(replace(options, model=name), facts)


def _find_address(name: str) -> str | None:
    """The address of the environment, if it is for this model: see `option_sources`."""
    from ferrule.cli.option_sources import ADDRESS_VARIABLE, is_address_for

    return os.environ.get(ADDRESS_VARIABLE) if is_address_for(name, os.environ.get("FERRULE_MODEL")) else None


def _collect_tools(options: SessionOptions) -> Iterator[Any]:
    """Collect the tools that options name; the calculator is none of a coding agent's."""
    if options.tools or options.plugins:
        from ferrule.builtin_tools import calculator
        from ferrule.cli.tool_sources import collect_tools

        yield from (one for one in collect_tools(options.tools or [], options.plugins) if one.name != calculator.name)


def can_show_prompt() -> bool:
    """Whether this is a terminal on which lines can be drawn again."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "")


def _run_on_terminal(prepare: Callable[[], CodingOptions], options: SessionOptions, question: str | None) -> int:
    """Show the prompt at once; what needs longer is checked behind it."""
    from ferrule.cli.errors import describe_error, require_extra

    _refuse_embedded(options.model)
    with require_extra("coding"):
        from ferrule.coding.terminal.program import run_terminal
    try:
        history: Path | None = find_state_folder() / "code_history"
    except RuntimeError:  # no home
        history = None
    return run_terminal(prepare, question, history, describe_error)


def _refuse_embedded(name: str) -> None:
    """Raise `SettingsError` for the default model."""
    if name == "embedded":
        from ferrule.errors import SettingsError

        raise SettingsError(f"the embedded model can't write code; {_CHOOSE_MODEL}")


def _answer_once(given: CodingOptions, options: SessionOptions, question: str | None) -> None:
    """Answer one question without asking anybody."""
    text = _read_question(question, "-" in (options.attachments or ()))
    with _open_session(replace(given, requires_servers=True), options, can_ask=False) as (coding, runner):
        if runner.run_turn(coding.ask(text)).stopped != "done":
            raise typer.Exit(1)


def _read_question(question: str | None, is_attached: bool) -> str:
    """Read the question: the argument, what is piped in, or both, with what is piped in before the argument.

    Raises `SettingsError` if there is none.
    """
    from ferrule.cli.standard_input import is_utf_8, read_piped_text
    from ferrule.errors import SettingsError

    if question is not None and not is_utf_8(question):
        raise SettingsError("the question is not UTF-8 text")
    piped = "" if is_attached or question == "-" else read_piped_text()
    if question == "-":
        from ferrule.cli.standard_input import read_text

        question = read_text()
    text = "\n\n".join(filter(None, (piped, (question or "").strip())))
    if not text:
        raise SettingsError('-p needs a question: ferrule code -p "…", or on standard input')
    return text


def _converse_in_lines(given: CodingOptions, options: SessionOptions, question: str | None) -> None:
    """Answer each line, as `chat` does: for a pipe, and for a terminal that can only show lines."""
    from ferrule.cli.chat import converse
    from ferrule.coding.overview import describe_session
    from ferrule.session.approvals import is_interactive

    with _open_session(given, options, can_ask=True) as (coding, runner):
        if is_interactive() and sys.stdout.isatty() and not options.as_json:
            _print_lines(describe_session(coding))
        first = () if question is None else (question,)
        is_whole = converse(runner, partial(_handle_line, coding), first)
    if not is_whole and not is_interactive():
        raise typer.Exit(1)


def _handle_line(coding: CodingSession, runner: SessionRunner, line: str) -> bool:
    """Run a command, or ask the model; returns whether it succeeded."""
    from ferrule._util.background import run_synchronously
    from ferrule.coding.commands import is_command, run_command
    from ferrule.session.approvals import is_interactive

    if is_command(line):
        _print_lines(run_synchronously(run_command(coding, line)))
        return True
    if not line.strip() and not (is_interactive() and coding.is_cut_off):
        return True
    return runner.run_turn(coding.ask(line) if line.strip() else coding.go_on()).stopped == "done"


def _print_lines(lines: Iterable[str]) -> None:
    """Print lines for people on stderr: stdout has the answers, which may be JSON."""
    for line in lines:
        print(line, file=sys.stderr)


@contextmanager
def _open_session(
    given: CodingOptions, options: SessionOptions, can_ask: bool
) -> Iterator[tuple[CodingSession, SessionRunner]]:
    """Open a session, and what runs its turns; it shows lines of text, or JSON.

    With `can_ask` a person is asked, if there is one.
    """
    from ferrule._util.background import enter_synchronously
    from ferrule.coding.opening import open_coding_session
    from ferrule.execution.tool_output import route_tool_output
    from ferrule.session.approvals import open_approver
    from ferrule.session.session import SessionRunner

    renderer = make_renderer(options, margin=_MARGIN)
    with (
        route_tool_output(),
        open_approver(given.allows_all, can_ask) as (approver, answers),
        enter_synchronously(open_coding_session(given, renderer, approver, answers)) as opened,
    ):
        yield opened, SessionRunner(opened.session)
