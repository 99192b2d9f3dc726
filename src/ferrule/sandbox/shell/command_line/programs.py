"""What a program would do with its arguments, by the tables of programs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ferrule.sandbox.git.commands import read_git
from ferrule.sandbox.shell.command_line.find import read_find
from ferrule.sandbox.shell.command_line.options import Options, UnsureError, split_options
from ferrule.sandbox.shell.command_line.outcome import (
    Outcome,
    check_awk,
    check_date,
    check_sed,
    check_test,
    find_host,
    loads_modules,
    shows_environments,
)
from ferrule.sandbox.shell.command_line.reading_programs import (
    READING_PROGRAMS,
    TRUSTED_FOLDERS,
    VERSION_PROGRAMS,
    ReadingProgram,
)
from ferrule.sandbox.shell.command_line.syntax import Word
from ferrule.sandbox.shell.command_line.writing_programs import WRITING_PROGRAMS, WritingProgram

__all__ = ["STDIN_PROGRAMS", "judge_program", "name_of_program", "runs_its_input"]

_UNKNOWN = Word(None, 0, 0)
_ACCOUNTS = (Word("/etc/passwd", 0, 0, "/etc/passwd"), Word("/etc/group", 0, 0, "/etc/group"))
_SESSIONS = (Word("/run/utmp", 0, 0, "/run/utmp"),)
_PROCESSES = (Word("/proc", 0, 0, "/proc"),)
_LEADS_OUT = re.compile(r"^[/~]|(?:^|/)\.\.(?:/|$)")

STDIN_PROGRAMS = frozenset(
    (
        *("sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "csh", "tcsh", "python", "python2", "python3", "pypy"),
        *("pypy3", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "tclsh", "osascript", "pwsh", "R"),
        *("julia", "ghci", "irb", "at", "batch", "psql", "mysql", "sqlite3", "bc", "dc", "ed", "ex", "gdb"),
    )
)
"""Programs that run what they read from their standard input when no argument names a file: no rule covers that."""
_PLAIN_OPTIONS = frozenset({"-u", "-B", "-x"})
_CODE_OPTIONS = frozenset({"-m", "-c", "-e", "-p", "--eval", "--print", "--test"})


def name_of_program(text: str) -> str:
    """The name by which the tables know a program; a path outside of the system's folders is its own name."""
    folder, _, name = text.rpartition("/")
    return name if folder and f"{folder}/" in TRUSTED_FOLDERS else text


def judge_program(name: str, arguments: Sequence[Word]) -> Outcome:
    """Tell what a program does with these arguments. Raises `UnsureError` for what no rule should cover."""
    if name in VERSION_PROGRAMS and [word.text for word in arguments] in [[one] for one in VERSION_PROGRAMS[name]]:
        return Outcome(reads_folder=True)
    if name == "git":
        return _judge_git(arguments)
    if name == "find":
        return read_find(arguments)
    if name in READING_PROGRAMS:
        return _judge_reading(name, READING_PROGRAMS[name], arguments)
    if name in WRITING_PROGRAMS:
        return _judge_writing(WRITING_PROGRAMS[name], arguments)
    hosts = [host for word in arguments if word.text and (host := find_host(word.text))]
    return Outcome(runs=True, hosts=list(dict.fromkeys(hosts)))


def _judge_git(arguments: Sequence[Word]) -> Outcome:
    command = read_git(arguments)
    outcome = Outcome(reads=list(command.folders), runs=command.kind == "runs")
    outcome.reads += [word for word in arguments if _LEADS_OUT.search(word.prefix)]
    outcome.hosts = [host for address in command.addresses if (host := find_host(address))]
    outcome.writes_repository = command.kind == "writes"
    outcome.reads_folder = command.kind == "reads" and not outcome.reads
    outcome.reads += [_join(command.folders, file) for file in command.files]
    outcome.is_recursive = command.shows_contents
    return outcome


def _join(folders: Sequence[Word], file: Word) -> Word:
    """The path of a file that git was given, which is relative to the folder that it works in."""
    if not folders or file.prefix[:1] in ("/", "~"):
        return file
    if file.text is None:
        return _UNKNOWN
    path = f"{folders[0].text}/{file.text}"
    return Word(path, file.start, file.end, path)


def _judge_reading(name: str, program: ReadingProgram, arguments: Sequence[Word]) -> Outcome:
    words = list(arguments)
    if program.check == "test":
        check_test(name, words)
    if program.table is None:
        reads = [word for word in words if _names_files(word)]
        return Outcome(reads=reads, reads_folder=not reads)
    options = split_options(words, program.table)
    skipped = 0 if options.has(*program.instead) else program.skipped
    scripts, operands = options.operands[:skipped], options.operands[skipped:]
    outcome = Outcome(writes_uncovered=options.values_of("OUT"))
    outcome.is_recursive = program.is_recursive or options.has(*program.recursive_options)
    outcome.follows = options.has(*program.follows) or (program.check == "diff" and not options.has("--no-dereference"))
    _check(program.check, options, scripts, operands, outcome)
    if not program.paths:
        operands = [word for word in operands if _names_files(word)]
    outcome.reads += operands
    outcome.reads_folder = not outcome.reads and not outcome.writes_uncovered
    outcome.reads += [*options.values_of("FILE"), *options.values_of("LIST")]
    if options.has(*program.listing) or options.values_of("LIST"):
        outcome.reads.append(_UNKNOWN)
    return outcome


def _check(check: str, options: Options, scripts: list[Word], operands: list[Word], outcome: Outcome) -> None:
    """Make the further checks that a program's table asks for. Takes from `operands` those that are no paths."""
    if check == "sed":
        check_sed([*scripts, *options.values("-e")])
        if options.has("-i"):
            outcome.writes_uncovered += operands
            operands.clear()
    elif check == "awk":
        check_awk(scripts, operands)
    elif check == "date":
        check_date(operands)
    elif check == "uniq" and len(operands) > 1:
        outcome.writes_uncovered.append(operands.pop())
    elif check == "one_operand" and (len(operands) > 1 or any(word.text is None for word in operands)):
        raise UnsureError("its second operand is written")
    elif check == "no_operand" and operands:
        raise UnsureError("its operand is set")
    elif check == "whereis" and not options.has("-B", "-M", "-S"):
        operands.clear()
    else:
        outcome.reads += _find_unnamed(check, options, scripts, operands)


def _find_unnamed(check: str, options: Options, scripts: list[Word], operands: list[Word]) -> Sequence[Word]:
    """The files that a program reads although no argument names them."""
    if check == "account" and operands:  # without one it shows the caller's own
        return _ACCOUNTS
    if check == "sessions":
        return _SESSIONS
    if check == "ps" and shows_environments(options.values("-o", "-O", "--format"), operands):
        return _PROCESSES
    if (check == "response_file" and any(word.prefix[:1] == "@" for word in operands)) or (
        check == "jq" and loads_modules(scripts)
    ):
        return (_UNKNOWN,)
    return ()


def _names_files(word: Word) -> bool:
    """Whether a word stands for the names of files, although it is no path for the program."""
    return word.has_pattern or word.pattern is not None


def _judge_writing(program: WritingProgram, arguments: Sequence[Word]) -> Outcome:
    options = split_options(arguments, program.table)
    paths = options.operands[program.skipped :]
    if any(word.text is None and not word.has_tilde for word in paths):
        raise UnsureError("what it writes isn't known before it runs")
    if not paths:
        return Outcome(reads_folder=True)
    is_recursive = program.is_recursive or options.has("-r", "-R", "-a")
    read = paths[:-1] if program.copies else []
    written = paths[-1:] if program.copies else paths
    return Outcome(reads=read, writes=written, runs=program.deletes, is_recursive=is_recursive)


def runs_its_input(arguments: Sequence[str | None]) -> bool:
    """Whether one of `STDIN_PROGRAMS` may run what it reads, unless its first arguments name a file or code."""
    for index, argument in enumerate(arguments):
        if argument in _CODE_OPTIONS:
            return index + 1 == len(arguments)
        if argument not in _PLAIN_OPTIONS:
            return argument is None or argument.startswith("-") or argument == "/dev/stdin"
    return True
