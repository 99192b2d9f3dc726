"""What commands that a shell has built in do: those that set variables or load code, and those that wait or read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ferrule.sandbox.shell.command_line.options import UnsureError
from ferrule.sandbox.shell.command_line.outcome import Outcome
from ferrule.sandbox.shell.command_line.syntax import Word
from ferrule.sandbox.shell.command_line.writing_programs import HARMLESS_VALUES, HARMLESS_VARIABLES

__all__ = ["SETTING_BUILTINS", "UNREADABLE_BUILTINS", "is_harmless_assignment", "judge_builtin"]

UNREADABLE_BUILTINS = frozenset({"alias", "unalias", "builtin", "enable", "shopt", "coproc", "function", "select"})
"""Those that change what the rest of a command line means, or whose arguments no table knows."""

_SETTING = frozenset({"declare", "typeset", "local", "readonly", "let", "getopts", "mapfile", "readarray", "hash"})
SETTING_BUILTINS = _SETTING | {".", "source", "export", "unset", "read", "printf", "set", "wait"}
"""Those that may set a variable which moves a later `cd`, unless what they do is known to be harmless."""
_PLAIN_VALUE = re.compile(r"[\w.,:@%+-]*")
_LOCAL_NAME = re.compile(r"(?!.*_proxy$)[a-z][a-z0-9_]*")
_SET_OPTIONS = re.compile(r"[-+][eux]+")
_SET_NAMES = frozenset({"pipefail", "errexit", "nounset", "xtrace"})


def is_harmless_assignment(name: str, value: Word | None, alone: bool = False) -> bool:
    """Whether a variable can be set without changing what programs do; None is any value.

    `alone`: it is set for this shell, not for one program, so that a name in lower case is the shell's own.
    """
    if (alone or value is None) and _LOCAL_NAME.fullmatch(name):
        return True
    if value is None or value.text is None:
        return False
    return (name in HARMLESS_VARIABLES and _PLAIN_VALUE.fullmatch(value.text) is not None) or (
        (name, value.text) in HARMLESS_VALUES
    )


def judge_builtin(name: str, arguments: Sequence[Word]) -> Outcome | None:
    """Tell what a built-in command does; None for any other program. Raises `UnsureError`."""
    texts = [word.text for word in arguments]
    if name in _SETTING:
        raise UnsureError(f"{name} sets variables")
    if name == "set":
        _check_set(texts)
    elif name == "read":
        if not all(text is not None and (text == "-r" or _LOCAL_NAME.fullmatch(text)) for text in texts):
            raise UnsureError("read sets a variable")
    elif name == "unset":
        if not all(text is not None and _LOCAL_NAME.fullmatch(text) for text in texts):
            raise UnsureError("unset removes a variable")
    elif name == "export":
        _check_export(arguments)
    elif name == "wait":
        if any(text is not None and not text.isdigit() for text in texts):
            raise UnsureError("wait with an option")
    else:
        return None
    return Outcome(reads_folder=True)


def _check_set(texts: list[str | None]) -> None:
    index = 0
    while index < len(texts):
        text = texts[index] or ""
        if text[-1:] == "o" and _SET_OPTIONS.fullmatch(text[:-1] + "e") and index + 1 < len(texts):
            index += 1
            if texts[index] not in _SET_NAMES:
                raise UnsureError("set with an unknown option")
        elif not _SET_OPTIONS.fullmatch(text):
            raise UnsureError("set changes the shell")
        index += 1


def _check_export(arguments: Sequence[Word]) -> None:
    for word in arguments:
        name, mark, value = (word.text or "").partition("=")
        if not mark or not is_harmless_assignment(name, Word(value, word.start, word.end)):
            raise UnsureError("export sets a variable for programs")
