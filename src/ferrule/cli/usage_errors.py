"""What is wrong with a command line itself: an unknown option, a missing argument, a value of another type."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

_EXTRA_ARGUMENTS = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)
_LEAST_SIMILAR = 0.7
"""How similar an option must be to be suggested, between 0 and 1: people run what they are told, `--yes` too."""


def describe_usage_error(error: Exception) -> str | None:
    """The message of an error in the options or arguments of a command; None for any other error."""
    # Not by its class: typer has a private copy of click.
    if not hasattr(error, "format_message"):
        return None
    usage = cast("Any", error)
    context = getattr(usage, "ctx", None)
    near = ""
    if hasattr(usage, "possibilities"):
        text, near = f"unknown option {usage.option_name}", _find_nearest(usage.option_name, usage.possibilities or ())
    elif invalid := _describe_invalid_value(usage, context):
        text = invalid
    else:
        text, _, near = usage.format_message().rstrip(".?").partition(". Did you mean ")
        if (found := _EXTRA_ARGUMENTS.search(text)) and _is_of(context, "analyze") and Path(found[1]).is_file():
            return f"unexpected argument: {found[1]}; data are given as --data {found[1]}"
        text = _EXTRA_ARGUMENTS.sub(r"unexpected argument: \1 (put a text of several words in quotes)", text)
        text = f"{text[:1].lower()}{text[1:]}"
    return f"{text}{_choose_advice(usage, context, near.replace(chr(39), ''))}"


def _choose_advice(usage: Any, context: Any, near: str) -> str:
    if near:
        return f"; did you mean {near}?"
    if context is None:
        return ""
    asks = any(one.name == "question" for one in context.command.params)
    if asks and (word := _find_dashed_text(getattr(usage, "option_name", ""))):
        return f'; a question that begins with a dash goes after --: {context.command_path} -- "{word}"'
    if _is_of(context, "ask") and getattr(getattr(usage, "param", None), "name", "") == "question" and _is_piped():
        return "; to read it from standard input, write: ferrule ask -"
    return f"; see `{context.command_path} --help`"


def _is_of(context: Any, command: str) -> bool:
    return getattr(context, "info_name", "") == command


def _find_nearest(option: str, options: Iterable[str]) -> str:
    """Find the option that is most similar, without its dashes, by which all are; empty if none is near."""
    import difflib

    given = option.lstrip("-")
    similar = [(difflib.SequenceMatcher(None, given, one.lstrip("-")).ratio(), one) for one in options]
    likeness, nearest = max(similar, default=(0.0, ""))
    return nearest if likeness >= _LEAST_SIMILAR else ""


def _find_dashed_text(option: str) -> str:
    """Find the word of the command line that was taken for `option` and is a text, such as `-3 + 5`; empty if none."""
    words = (word for word in sys.argv[1:] if word.startswith(option) and option)
    return next((word for word in words if " " in word or not word.lstrip("-")[:1].isalpha()), "")


def _is_piped() -> bool:
    """Whether standard input is a pipe or a file."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):  # closed
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def _describe_invalid_value(usage: Any, context: Any) -> str:
    """Describe the value of an option that typer has checked by pydantic; empty for any other error."""
    # Not imported: an error of pydantic can occur only where pydantic is loaded.
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(usage.__cause__, pydantic.ValidationError):
        return ""
    from ferrule._util.invalid_fields import describe_invalid_field

    option = usage.param
    source = context.get_parameter_source(option.name) if context is not None else None
    is_variable = source is not None and source.name == "ENVIRONMENT"
    place = str(option.envvar if is_variable else next(iter(option.opts), option.name))
    return describe_invalid_field(usage.__cause__.errors(include_url=False)[0], place)
