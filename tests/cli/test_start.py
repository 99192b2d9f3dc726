"""How the command starts: quickly, and with help for everything."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from terminals import COMMAND, assert_refused, environment, ferrule

from absent_path import NOWHERE
from ferrule import __version__

COMMANDS = (
    "ask",
    "chat",
    "code",
    "analyze",
    "models",
    "tools",
    "call",
    "plugins",
    "render",
    "dialects",
    "parse",
    "synth",
    "completion",
    "functions",
    "keys",
    "history",
    "mcp",
    "policy",
    "sandbox",
    "train",
    "eval",
)


def test_help_names_every_command() -> None:
    done = ferrule("--help")
    assert (done.returncode, done.stderr) == (0, "")
    listed = [line.split()[0] for line in done.stdout.partition("Commands:\n")[2].splitlines()]
    assert tuple(listed) == COMMANDS


@pytest.mark.parametrize(
    "command",
    [*COMMANDS, "train embedded", "eval embedded"]
    + [f"history {name}" for name in ("list", "show", "search", "fork", "delete", "export")]
    + [f"keys {name}" for name in ("set", "list", "remove")]
    + [f"policy {name}" for name in ("explain", "check", "trust", "list", "forget")],
)
def test_every_command_has_help(command: str) -> None:
    done = ferrule(*command.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: ferrule {command}" in done.stdout


def test_version() -> None:
    assert ferrule("--version").stdout == f"ferrule {__version__}\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("frobnicate", "no such command 'frobnicate'; see `ferrule --help`"),
        ("asc hi", "no such command 'asc'; did you mean ask?"),
        ("history lst", "no such command 'lst'; did you mean list?"),
        ("--versoin", "unknown option --versoin; did you mean --version?"),
        ("ask", "missing argument 'question'; "),
        ("ask hi --frobnicate", "unknown option --frobnicate; see `ferrule ask --help`"),
        ("chat --foo", "unknown option --foo; see `ferrule chat --help`"),
        ("chat --xyz", "unknown option --xyz; see `ferrule chat --help`"),
        ("chat --yess", "unknown option --yess; did you mean --yes?"),
        ("ask hi --output x", "unknown option --output; see `ferrule ask --help`"),
        ("ask -3+5", 'unknown option -3; a question that begins with a dash goes after --: ferrule ask -- "-3+5"'),
        ("ask -x", "unknown option -x; see `ferrule ask --help`"),
        ("ask hi --toools x", "unknown option --toools; did you mean --tools?"),
        ("ask hi there", "unexpected argument: there (put a text of several words in quotes)"),
        ("ask hi --mode", "option '--mode' requires an argument"),
        ("synth x --count none", "--count: must be a valid integer, not 'none'; see `ferrule synth --help`"),
        ("ask hi --temperature hot", "--temperature: must be a valid number, not 'hot'; see `ferrule ask --help`"),
        ("ask hi --max-tokens 0", "--max-tokens: must be greater than or equal to 1, not '0'"),
    ],
)
def test_a_wrong_option_is_one_line(command: str, words: str) -> None:
    assert_refused(ferrule(*command.split()), words)


def test_a_wrong_value_of_a_variable_names_the_variable() -> None:
    refused = ferrule("ask", "hi", FERRULE_TEMPERATURE="hot")
    assert_refused(refused, "FERRULE_TEMPERATURE: must be a valid number, not 'hot'")


def test_a_question_that_is_only_piped_in_is_told_how_to_be_read() -> None:
    advice = "missing argument 'question'; to read it from standard input, write: ferrule ask -"
    assert_refused(ferrule("ask", typed="What is 3*4?"), advice)


@pytest.mark.parametrize("group", ["", "eval", "functions", "history", "keys", "mcp", "policy", "sandbox", "train"])
def test_no_description_in_a_list_of_commands_is_cut(group: str) -> None:
    lines = ferrule(*group.split(), "--help").stdout.splitlines()
    assert [line for line in lines if line.endswith("...") and not line.startswith("Usage:")] == []


def test_a_group_without_a_command_prints_its_help() -> None:
    done = ferrule("train")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: ferrule train")


def _list_imported(source: str) -> set[str]:
    """The modules of a fresh interpreter that runs `source`, without those that it always has."""
    source = f"import sys\nbare = set(sys.modules)\n{source}\nprint(*(set(sys.modules) - bare), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, env=environment(), text=True, check=True)
    return set(done.stderr.split())


INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupter:
    def find_spec(self, name, *_):
        if name == "ferrule.cli.errors":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupter())
from ferrule.cli import main
main()
"""


def test_ctrl_c_while_the_command_line_is_imported_leaves_no_traceback() -> None:
    command = [sys.executable, "-c", INTERRUPTED_IMPORT]
    done = subprocess.run(command, capture_output=True, env=environment(), text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_help_imports_little() -> None:
    """Counted, as times differ with a machine's load: `benchmarks/startup.py` has the promise in milliseconds."""
    imported = _list_imported(
        "import contextlib, ferrule.cli\nsys.argv = ['ferrule', '--help']\n"
        "with contextlib.suppress(SystemExit):\n    ferrule.cli.main()"
    )
    assert "ferrule.cli" in imported
    slow = {"asyncio", "jinja2", "numpy", "pydantic", "rich", "sqlite3", "torch"}
    assert not slow & imported
    assert len(imported) < 2 * len(_list_imported("import typer.main"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("dialects",),
        ("eval", "embedded", "--model", NOWHERE),
        ("history", "search", "x", "--store", NOWHERE),
        ("train", "embedded", "--out", NOWHERE, "--show-settings"),
    ],
)
def test_a_command_started_anew_imports_all_that_it_needs(arguments: tuple[str, ...]) -> None:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, env=environment(), text=True, check=False)
    assert "Traceback" not in done.stderr
    assert (bool(done.stdout), done.returncode) in ((True, 0), (False, 2))


def test_output_that_cannot_be_written_is_told_and_a_reader_that_left_is_not() -> None:
    for command in (("tools",), ("call", "calculator", "--expression", "1")):
        with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device, not a file
            done = subprocess.run(
                [*COMMAND, *command], stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
            )
        assert (done.returncode, done.stderr) == (2, b"ferrule: No space left on device\n")
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [*COMMAND, *command], stdout=writer, stderr=subprocess.PIPE, env=environment(), check=False
        )
        os.close(writer)
        assert done.stderr == b""
