"""`ferrule chat`: talk with a model, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.cli.session_options import SessionOptions, add_session_options, open_session

if TYPE_CHECKING:
    from ferrule.conversation import Conversation
    from ferrule.session.session import SessionRunner

_HELP = "/save FILE saves the conversation, /new begins another, /quit or Ctrl-D ends, Ctrl-C stops an answer"


@add_session_options
def chat(*, options: SessionOptions) -> None:
    """Talk with a model.

    Ctrl-C stops an answer; Ctrl-D or /quit ends; /save FILE saves the conversation.
    """
    with open_session(options) as runner:
        converse(runner)


def converse(runner: SessionRunner) -> None:
    """Answer each line until the input ends. An error in one of them doesn't end the conversation.

    The open calls of a resumed conversation are answered first.
    """
    from ferrule.cli.standard_input import read_lines

    lines = read_lines()
    if runner.session.conversation.pending:
        _run_interruptibly(partial(_report_errors, runner.answer_pending))
    # Lines are read inside the same call that answers them, so that a Ctrl-C between the two is caught as well.
    while _run_interruptibly(partial(_answer_next, runner, lines)) is not False:
        pass


def _run_interruptibly(act: Callable[[], bool]) -> bool | None:
    """Run `act`; returns None after Ctrl-C at a terminal, and raises it where stdin is no terminal."""
    from ferrule.session.approvals import is_interactive

    try:
        return act()
    except KeyboardInterrupt:
        if not is_interactive():
            raise
        return None


def _answer_next(runner: SessionRunner, lines: Iterator[str]) -> bool:
    """Answer the next line; returns whether there was one."""
    line = next(lines, None)
    if line is None or line.strip() in ("/quit", "/exit"):
        return False
    return _report_errors(partial(_handle_line, runner, line))


def _report_errors(act: Callable[[], object]) -> bool:
    from ferrule.cli.errors import describe_error, print_error
    from ferrule.errors import FerruleError

    try:
        act()
    except BrokenPipeError:
        raise
    except (FerruleError, OSError) as error:
        print_error(describe_error(error) or str(error))
    return True


def _handle_line(runner: SessionRunner, line: str) -> None:
    from ferrule.session.terminal_output import print_notice

    word, _, rest = line.strip().partition(" ")
    if word == "/new":
        runner.session.start_new()
    elif word == "/save":
        _save(runner.session.conversation, rest.strip())
    elif word.startswith("/") and word[1:].isalpha():
        print_notice(_HELP)
    elif word:
        runner.ask(line)


def _save(conversation: Conversation, name: str) -> None:
    from ferrule.cli.files import write_conversation
    from ferrule.session.terminal_output import print_notice

    form = None
    if name.startswith("--format "):
        form, _, name = name.removeprefix("--format ").strip().partition(" ")
    if not name:
        print_notice("/save needs a file name")
        return
    write_conversation(Path(name.strip()), conversation, form)
    print_notice(f"saved {len(conversation)} messages in {name}")
