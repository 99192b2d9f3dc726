"""Programs that write the paths in their arguments and do nothing else: data.

Options that change which paths these are have no place in the tables, so that they make the effects unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.sandbox.shell.command_line.options import OptionTable, parse_table

__all__ = ["HARMLESS_VALUES", "HARMLESS_VARIABLES", "WRITING_PROGRAMS", "WritingProgram"]


@dataclass(frozen=True, slots=True)
class WritingProgram:
    """How a program writes: `skipped` operands come before the paths; with `copies`, all but the last are only read.

    `deletes`: what it writes is lost, so running it is an effect of its own. `is_recursive`: it works on all that is in
    a folder also without an option that says so.
    """

    table: OptionTable
    skipped: int = 0
    copies: bool = False
    deletes: bool = False
    is_recursive: bool = False


WRITING_PROGRAMS: dict[str, WritingProgram] = {
    "mkdir": WritingProgram(parse_table("-pv --parents --verbose -m,--mode=")),
    "touch": WritingProgram(parse_table("-acm --no-create -d,--date= -t=")),
    "cp": WritingProgram(
        parse_table(
            "-a,--archive -r,-R,--recursive -pfnuvT --force --no-clobber --update --verbose --preserve "
            "--no-target-directory"
        ),
        copies=True,
        is_recursive=True,  # the last may be a folder, in which a file is replaced
    ),
    "mv": WritingProgram(
        parse_table("-fnuvT --force --no-clobber --update --verbose --no-target-directory"), is_recursive=True
    ),
    "tee": WritingProgram(parse_table("-aip --append --ignore-interrupts")),
    "truncate": WritingProgram(parse_table("-co -s,--size= --no-create --io-blocks")),
    "chmod": WritingProgram(parse_table("-R,--recursive -cvf --changes --verbose --silent --quiet"), skipped=1),
    "rm": WritingProgram(
        parse_table("-r,-R,--recursive -fvdiI --force --verbose --dir --one-file-system --preserve-root"), deletes=True
    ),
    "rmdir": WritingProgram(parse_table("-pv --parents --verbose --ignore-fail-on-non-empty"), deletes=True),
    "unlink": WritingProgram(parse_table(""), deletes=True),
}

HARMLESS_VARIABLES = frozenset(
    {"LANG", "LANGUAGE", "TZ", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "COLUMNS", "LINES"}
    | {"LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME"}
    | {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "RUST_BACKTRACE", "GIT_TERMINAL_PROMPT"}
)
"""Environment variables that change no program's effects, with a plain value."""

HARMLESS_VALUES = frozenset(
    {("PAGER", "cat"), ("GIT_PAGER", "cat"), ("TERM", "dumb"), ("DEBIAN_FRONTEND", "noninteractive")}
)
"""Variables that are harmless with this one value."""
