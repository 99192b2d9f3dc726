"""Command lines that are huge, deeply nested or damaged are answered quickly, and never end the process."""

import subprocess
import sys
import time
from itertools import product

import pytest

from ferrule.sandbox.shell.command_line import parse_command_line
from ferrule.tools.intent import Effect
from tables import each_case

FOLDER = "/workspace"
REPEATED = [
    *(
        "(",
        ")",
        "{ ",
        "$(",
        "`",
        "$((",
        "${a:-",
        "<(",
        "[[ ",
        "[ ",
        "((",
        '"',
        "'",
        "\\",
        "$",
        "#",
        "!",
        "! ",
        "<<A ",
        "<a ",
    ),
    *(
        "if ",
        "case x in a) ",
        "while ",
        "for a in ",
        "f()",
        "f(){ ",
        "a=",
        "a=(",
        "&&",
        "ls && ",
        "| ",
        "ls|",
        ";",
        "ls;",
    ),
    *(
        "\n",
        "a\n",
        "a ",
        "'a'",
        '"a"',
        "{a,",
        "sh -c ",
        "eval ",
        "env ",
        "sudo ",
        "xargs ",
        "find . -exec ",
        "(ls;",
        "é",
        "\u202e",
    ),
    *("cat <<A\nx\nA\n", "\\\n", " - ", "else ", "$'a'", "(a)|", "time ", "command ", "a&>b ", "if a; then b; fi; "),
]


CLOSINGS = ("", "ls", "ls)", "ls" + ")" * 10_000)


@each_case(("piece", "closing"), [(piece, CLOSINGS[number % 4]) for number, piece in enumerate(REPEATED)])
def test_repeated_pieces(piece: str, closing: str) -> None:
    check_repeated(piece, closing)


@pytest.mark.slow
@each_case(("piece", "closing"), list(product(REPEATED, CLOSINGS)))
def test_repeated_pieces_with_each_closing(piece: str, closing: str) -> None:
    check_repeated(piece, closing)


def check_repeated(piece: str, closing: str) -> None:
    text = piece * 10_000 + closing
    started = time.thread_time()
    line = parse_command_line(text, FOLDER)
    # Far above what it takes, and far below what anything quadratic would.
    assert time.thread_time() - started < 5
    assert line.effects


@pytest.mark.parametrize("levels", [1, 5, 50, 500, 5000])
def test_nested_shells(levels: int) -> None:
    line = parse_command_line("nohup " * levels + "rm x", FOLDER)
    assert line.problem or line.parts[0].words == ("rm", "x")
    line = parse_command_line("eval " * levels + "rm x", FOLDER)
    assert line.problem or line.parts[0].words == ("rm", "x")
    quoted = "rm x"
    for _ in range(min(levels, 12)):
        quoted = "sh -c '" + quoted.replace("'", "'\\''") + "'"
    nested = parse_command_line(quoted, FOLDER)
    assert any(effect.kind == "run" for effect in nested.effects)


def test_more_parts_than_the_limit_are_a_problem() -> None:
    assert parse_command_line("ls;" * 2000, FOLDER).problem is None
    line = parse_command_line("ls;" * 2001, FOLDER)
    assert line.problem == "it has more than 2000 parts"
    assert line.effects == (Effect("run", line.text),)


@pytest.mark.parametrize("text", ["ls " + "x" * 200_000, "ls \udc80", "ls\0rm x", "ls\x1b[2J", "ls\x9b"])
def test_texts_that_no_shell_can_be_given(text: str) -> None:
    line = parse_command_line(text, FOLDER)
    assert line.problem
    assert line.effects == (Effect("run", text),)


@pytest.mark.parametrize("text", ["ls 'é' ; cat ü", "echo '✓✓' && rm 'x y'", "'𝒳' | ls"])
def test_parts_have_the_text_that_they_point_to(text: str) -> None:
    line = parse_command_line(text, FOLDER)
    assert [line.text[part.start : part.end] for part in line.parts] == [part.text for part in line.parts]
    assert len(line.parts) == 2


def test_without_the_extra_every_command_is_a_problem() -> None:
    code = (
        "import sys; sys.modules['tree_sitter_bash'] = None\n"
        "from ferrule.sandbox.shell.command_line import parse_command_line\n"
        "line = parse_command_line('ls', '/workspace')\n"
        "print(line.problem, [effect.kind for effect in line.effects])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "ferrule[coding]"' in done.stdout
    assert done.stdout.strip().endswith("['run']")


def test_importing_loads_no_grammar() -> None:
    code = "import sys, ferrule.sandbox.shell.command_line\nprint('tree_sitter' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
