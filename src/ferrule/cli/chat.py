"""`ferrule chat`: talk with a model, line by line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import typer

from ferrule.cli.session_options import SessionOptions, add_session_options, open_session

if TYPE_CHECKING:
    from ferrule.conversation import Conversation
    from ferrule.session.session import Session, SessionRunner

_USAGE = {
    "/new": "begins another conversation",
    "/save FILE": "saves the conversation",
    "/save --format FORMAT FILE": "saves it as openai, openai-responses, anthropic, nanochat or ovis",
    "/quit": "ends, as does Ctrl-D",
    "/help": "lists this",
    "Ctrl-C": "stops an answer",
}
_COMMANDS = (*(usage.split()[0] for usage in _USAGE if usage.startswith("/")), "/exit")
_LISTED_TOOLS = 8
_Outcome: TypeAlias = Literal["succeeded", "failed", "interrupted", "ended"]
"""What came of one line."""


@add_session_options
def chat(*, options: SessionOptions) -> None:
    """Talk with a model.

    Ctrl-C stops an answer; Ctrl-D or /quit ends; /save FILE saves the conversation; /help lists more.
    """
    from ferrule.session.approvals import is_interactive

    with open_session(options) as runner:
        if is_interactive() and sys.stdout.isatty() and not options.as_json:
            print_banner(runner.session)
        is_whole = converse(runner)
    # A person has seen what failed; a script has only the exit status.
    if not is_whole and not is_interactive():
        raise typer.Exit(1)


def converse(
    runner: SessionRunner, handle_line: Callable[[SessionRunner, str], bool] | None = None, first: Iterable[str] = ()
) -> bool:
    """Answer each line until the input ends. An error in one of them doesn't end the conversation.

    `handle_line` answers a line and returns whether that succeeded; by default it is a question or one of the commands
    of `chat`, which answers the open calls of a resumed conversation first. `first` are lines before those of the
    input. Returns whether each line succeeded.
    """
    from ferrule.cli.standard_input import read_lines

    lines = chain(first, read_lines())
    outcomes: set[_Outcome] = set()
    if handle_line is None and runner.session.conversation.pending:
        outcomes.add(_run_interruptibly(partial(_report_errors, partial(_answer_pending, runner))))
    # Lines are read inside the same call that answers them, so that a Ctrl-C between the two is caught as well.
    while "ended" not in outcomes:
        answer = partial(handle_line or _handle_line, runner)
        outcomes.add(_run_interruptibly(partial(_answer_next, answer, lines)))
    return "failed" not in outcomes


def _run_interruptibly(act: Callable[[], _Outcome]) -> _Outcome:
    """Run `act`; a Ctrl-C at a terminal stops only that, and is raised where stdin is no terminal."""
    from ferrule.session.approvals import is_interactive

    try:
        return act()
    except KeyboardInterrupt:
        if not is_interactive():
            raise
        return "interrupted"


def _answer_next(answer: Callable[[str], bool], lines: Iterator[str]) -> _Outcome:
    """Answer the next line, if there is one."""
    line = next(lines, None)
    if line is None or line.partition(" ")[0].rstrip() in ("/quit", "/exit"):
        return "ended"
    return _report_errors(partial(answer, line))


def _answer_pending(runner: SessionRunner) -> bool:
    return runner.run_turn(runner.session.answer_pending()).stopped == "done"


def _report_errors(act: Callable[[], bool]) -> _Outcome:
    from ferrule.cli.errors import describe_error, print_error
    from ferrule.errors import FerruleError

    try:
        return "succeeded" if act() else "failed"
    except BrokenPipeError:
        raise
    except (FerruleError, OSError) as error:
        print_error(describe_error(error) or str(error))
        return "failed"


def _handle_line(runner: SessionRunner, line: str) -> bool:
    """Run a command, or ask the model; returns whether it succeeded."""
    from ferrule.session.slash_commands import describe_unknown_command, looks_like_command
    from ferrule.session.terminal.output import print_notice

    word, _, rest = line.strip().partition(" ")
    if word == "/new":
        runner.session.start_new()
    elif word == "/save":
        _save(runner.session.conversation, rest.strip())
    elif word == "/help":
        print_help()
    elif looks_like_command(line):
        print_notice(describe_unknown_command(word, _COMMANDS))
        return False
    elif word:
        return runner.ask(line).stopped == "done"
    return True


def print_help() -> None:
    """Print the commands and keys on stderr: stdout has the answers, which may be JSON."""
    width = max(map(len, _USAGE))
    for usage, what in _USAGE.items():
        print(f"{usage:{width}}  {what}", file=sys.stderr)


def print_banner(session: Session) -> None:
    """Print the model and its tools."""
    from rich.console import Console

    from ferrule import __version__
    from ferrule._util.terminal_text import escape_line

    names = session.registry.names
    more = f" and {len(names) - _LISTED_TOOLS} more" if len(names) > _LISTED_TOOLS else ""
    tools = f"tools: {', '.join(names[:_LISTED_TOOLS])}{more}" if names else "no tools"
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(escape_line(f"ferrule {__version__}, model {session.model_name}, {tools}"), style="bold")
    console.print("/help lists the commands, Ctrl-D ends", style="dim")


def _save(conversation: Conversation, text: str) -> None:
    from ferrule._util.pluralize import pluralize
    from ferrule.cli.files import write_conversation
    from ferrule.errors import SettingsError
    from ferrule.session.terminal.output import print_notice

    form, name = None, text
    if text.partition(" ")[0] == "--format":
        form, _, name = text.removeprefix("--format").strip().partition(" ")
    name = name.strip()
    if name.startswith("--"):
        raise SettingsError(f"/save has no option {name.split()[0]}; write /save FILE or /save --format FORMAT FILE")
    if not name:
        raise SettingsError("/save needs a file name: /save FILE or /save --format FORMAT FILE")
    write_conversation(Path(name), conversation, form)
    print_notice(f"saved {pluralize(len(conversation), 'message')} in {name}")
