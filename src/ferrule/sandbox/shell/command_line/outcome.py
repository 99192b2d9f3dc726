"""What one program would do, before its paths are resolved; and the tables' further checks of programs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ferrule.sandbox.shell.command_line.options import UnsureError
from ferrule.sandbox.shell.command_line.syntax import Word

__all__ = [
    "Outcome",
    "check_awk",
    "check_date",
    "check_sed",
    "check_test",
    "find_host",
    "loads_modules",
    "shows_environments",
]


@dataclass(slots=True)
class Outcome:
    """Paths read and written, whether the program runs unknown code, and the hosts that it names.

    `follows`: links below the paths are followed. `writes_uncovered` are paths that an option makes it write, which no
    rule for the program should cover. `is_recursive`: of the paths that are folders, what is below them is read or
    written, too.
    """

    reads: list[Word] = field(default_factory=list)
    writes: list[Word] = field(default_factory=list)
    writes_uncovered: list[Word] = field(default_factory=list)
    runs: bool = False
    reads_folder: bool = False
    follows: bool = False
    writes_repository: bool = False
    hosts: list[str] = field(default_factory=list)
    is_recursive: bool = False


_PATTERN = r"/(?:[^/\\\n\[]|\\.|\[\^?\]?[^\]\n]*\])*/[IM]*"
_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|{_PATTERN})"
_RANGE = rf"(?:{_ADDRESS}(?:[ \t]*+,[ \t]*+(?:{_ADDRESS}|\+\d+|~\d+))?[ \t]*+!?[ \t]*+)?"
_SUBSTITUTION = (
    r"s(?:/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/|\|(?:[^|\\\n]|\\.)*\|(?:[^|\\\n]|\\.)*\||"
    r"#(?:[^#\\\n]|\\.)*#(?:[^#\\\n]|\\.)*#|,(?:[^,\\\n]|\\.)*,(?:[^,\\\n]|\\.)*,)[gpIi0-9]*"
)
_SED_COMMAND = rf"[ \t]*+{_RANGE}(?:[pdqDPgGhHxnN=]|{_SUBSTITUTION})?[ \t]*+"
_SED_SCRIPT = re.compile(rf"{_SED_COMMAND}(?:[;\n]{_SED_COMMAND})*", re.DOTALL)
_MAX_SCRIPT = 2000
_ENVIRONMENT = re.compile("env", re.IGNORECASE)
_AWK_LIVE = re.compile(r"[|>@]|system|getline|close|fflush|extension|load|ARGV|ARGC|SYMTAB|FUNCTAB")
_JQ_LOADING = re.compile(r'(?<![.\w$"])(?:import|include)(?!\w|\s*[:,|)\]}=])|modulemeta')


def check_sed(scripts: list[Word]) -> None:
    """Check that a sed script only edits its stream. Raises `UnsureError`."""
    for script in scripts:
        if script.text is None or len(script.text) > _MAX_SCRIPT or not _SED_SCRIPT.fullmatch(script.text):
            raise UnsureError("a sed script that may write or run")


def check_awk(scripts: list[Word], operands: list[Word]) -> None:
    """Check that an awk program only prints. Raises `UnsureError`."""
    for script in scripts:
        if script.text is None or _AWK_LIVE.search(script.text):
            raise UnsureError("an awk program that may write or run")
    if any(word.may_be_option for word in operands):
        raise UnsureError("an awk operand that isn't known before it runs")


def loads_modules(scripts: list[Word]) -> bool:
    """Whether a jq program may read files that its own text names."""
    return any(script.text is None or _JQ_LOADING.search(script.text) is not None for script in scripts)


def shows_environments(formats: list[Word], operands: list[Word]) -> bool:
    """Whether `ps` shows the environment of processes: by a letter `e` without a dash, or a column of that name."""
    return any(word.text is None or _ENVIRONMENT.search(word.text) for word in formats) or any(
        word.text is None or (word.text.isalpha() and "e" in word.text) or _ENVIRONMENT.search(word.text)
        for word in operands
    )


def check_date(operands: list[Word]) -> None:
    """Check that `date` doesn't set the time. Raises `UnsureError`."""
    if any(not word.prefix.startswith("+") for word in operands):
        raise UnsureError("date may set the time")


def check_test(name: str, arguments: list[Word]) -> None:
    """Check that no test evaluates a subscript or arithmetic, in which a substitution may be hidden."""
    if name in ("[", "[["):
        last = arguments.pop() if arguments else None
        if last is None or last.text != {"[": "]", "[[": "]]"}[name]:
            raise UnsureError("a test without an end")
    for word in arguments:
        if word.text in ("-v", "-R") or (name == "[[" and word.text in _ARITHMETIC_TESTS):
            raise UnsureError("a test that may evaluate its text")


_ARITHMETIC_TESTS = ("-eq", "-ne", "-lt", "-le", "-gt", "-ge")
_HOST = re.compile(r"(?:git\+)?(?:https?|ssh|git|ftp)://(?:[^/@\s]*@)?(\[[0-9a-f:]+\]|[\w.-]+)(:\d+)?(?:/|$)")
_SCP = re.compile(r"[\w.-]+@([\w.-]+\.[\w.-]+):")


def find_host(text: str) -> str | None:
    """The host, with its port if it names one, in an address."""
    found = _HOST.match(text)
    if found:
        return found[1] + (found[2] or "")
    found = _SCP.match(text)
    return found[1] if found else None
