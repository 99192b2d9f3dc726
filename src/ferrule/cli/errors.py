"""How a command fails: with one clear line on stderr and an exit status, without a traceback for bad input.

A traceback is for bugs in ferrule, and for people who set FERRULE_DEBUG.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, cast

from ferrule.cli.plain_characters import ERRORS
from ferrule.errors import (
    FerruleError,
    OutputInvalid,
    Overloaded,
    PolicyWarning,
    ProviderError,
    SettingsError,
    advise_commands,
)

FAILED, BAD_INPUT, PROVIDER_FAILED, INTERRUPTED = 1, 2, 3, 130
_REFUSALS = range(400, 500)
_BUSY = (408, 425, 429)
"""HTTP statuses that look like a refusal and pass if one waits."""


def run_command(command: Callable[[], None]) -> int:
    """Run a command and return its exit status. Raises errors that the input didn't cause."""
    _open_closed_streams()
    _exit_on_signals()
    for stream in (sys.stdout, sys.stderr):
        # Don't fail because an argument isn't UTF-8, or the terminal can't show a character.
        cast("Any", stream).reconfigure(errors=ERRORS)
    message = None
    try:
        with _write_for_a_shell(), _print_tool_tracebacks() if _is_debugging() else nullcontext():
            command()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        status = FAILED
    except Exception as error:  # noqa: BLE001 - raised again if the input didn't cause it
        if _is_of_interrupt(error):
            status = INTERRUPTED
        else:
            message = _report(error)
            status = _choose_status(error)
    except BaseException as error:
        if not _is_cancellation(error):
            raise
        status = INTERRUPTED
    return _flush_streams(status, message)


def _exit_on_signals() -> None:
    """Let the signals that end a program raise `SystemExit`, so that it leaves no folders or processes behind.

    A second one ends it at once. One that is ignored (`nohup`) stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    for each in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) is signal.SIG_DFL:
            signal.signal(each, _exit_by_signal)
    _restore_signals_in_children()


def _exit_by_signal(number: int, _frame: object) -> None:
    _restore_signals()
    raise SystemExit(128 + number)


def _restore_signals() -> None:
    for each in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) is _exit_by_signal:
            signal.signal(each, signal.SIG_DFL)


@cache
def _restore_signals_in_children() -> None:
    """Let forked children end at once; registered once for a process, in which several commands may run."""
    os.register_at_fork(after_in_child=_restore_signals)


def _report(error: Exception) -> str | None:
    """Print an error that the input caused, and return its message, None if it is a help page. Raises any other."""
    if type(error).__name__ == "NoArgsIsHelpError":
        cast("Any", error).show()
        return None
    # Imported here, so that a command without errors doesn't load it.
    from ferrule.cli.usage_errors import describe_usage_error

    message = describe_usage_error(error) or describe_error(error)
    if message is None:
        raise error
    if _is_debugging():
        traceback.print_exc()
    print_error(message)
    return message


def _choose_status(error: Exception) -> int:
    if isinstance(error, OutputInvalid):
        return FAILED
    return PROVIDER_FAILED if is_outage(error) else BAD_INPUT


def is_outage(error: Exception) -> bool:
    """Whether a provider failed, is busy or can't be reached: the same command may work later."""
    if isinstance(error, ProviderError):
        return error.status not in _REFUSALS or error.status in _BUSY
    return isinstance(error, Overloaded)


def _is_cancellation(error: BaseException) -> bool:
    """Whether asyncio was interrupted: a Ctrl-C while it installs its own handler comes out as `CancelledError`."""
    asyncio = sys.modules.get("asyncio")  # not imported for commands that don't use it
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def _is_of_interrupt(error: BaseException) -> bool:
    """Whether a Ctrl-C caused an error: transformers raises an error of its own for one while it imports a module."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, KeyboardInterrupt):
            return True
        seen.add(id(cause))
        cause = cause.__cause__ if cause.__suppress_context__ else cause.__context__
    return False


def print_error(text: str) -> None:
    """Print an error on stderr, on one line."""
    # Imported here, so that a command without errors doesn't load it.
    from ferrule.session.terminal.output import print_notice

    print_notice(text)


def describe_error(error: Exception) -> str | None:
    """The message of an error that the input caused; None for any other error."""
    if isinstance(error, OutputInvalid):
        return _describe_invalid_output(error)
    if isinstance(error, FerruleError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 text: {error.reason} at byte {error.start}"
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{os.fsdecode(error.filename)}: {reason}" if error.filename is not None else reason
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    # Not imported: an error of pydantic can occur only where pydantic is loaded.
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(error, pydantic.ValidationError):
        return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in cast("Any", error).errors())
    return None


def _describe_invalid_output(error: OutputInvalid) -> str:
    from ferrule.transcript import summarize_result

    summary, *problems = str(error).split("\n- ")
    answered = f" (the last answer: {summarize_result(error.text)})" if error.text else ""
    return " ".join(filter(None, (summary, "; ".join(problems)))) + answered


@contextmanager
def require_extra(extra: str) -> Iterator[None]:
    """Raise `SettingsError` with the extra to install if an import in the block fails."""
    try:
        yield
    except ImportError as error:
        missing = (error.name or "a part of it").partition(".")[0]
        raise SettingsError(f"this needs {missing}; install it with: pip install 'ferrule[{extra}]'") from error


def _is_debugging() -> bool:
    return bool(os.environ.get("FERRULE_DEBUG"))


def _print_tool_tracebacks() -> AbstractContextManager[None]:
    """Print the traceback of each tool that raises in the block."""
    from ferrule.session.terminal.output import print_tool_tracebacks

    return print_tool_tracebacks()


@contextmanager
def _write_for_a_shell() -> Iterator[None]:
    """Let errors advise commands, and print the policy's warnings like the command's own notices, each once."""
    before = advise_commands.set(True)
    with warnings.catch_warnings():
        warnings.simplefilter("once", PolicyWarning)
        show_others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, PolicyWarning):
                print_error(str(message))
            else:
                show_others(message, category, *rest, **more)

        warnings.showwarning = show
        try:
            yield
        finally:
            advise_commands.reset(before)


def _open_closed_streams() -> None:
    """Open streams that the process was started without (`>&-`), for which Python has None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


def _flush_streams(status: int, message: str | None) -> int:
    """Flush the output; returns the exit status. A failing write is an error, printed unless it equals `message`."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            # Otherwise Python would flush again at exit, and print an error of its own.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if isinstance(error, BrokenPipeError):
                continue
            problem = describe_error(error) or str(error)
            if problem != message:
                print_error(problem)
            status = BAD_INPUT
    return status
