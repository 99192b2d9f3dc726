"""Command lines compared with what real shells do: which programs they start, with which words, and what they write."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ferrule.sandbox.shell.command_line import CommandLine, parse_command_line

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
# Writes its own name and arguments to a file outside of the folder, one call after the other.
# In one write, since programs of a pipeline run at the same time.
RECORDER = """#!/bin/sh
printf '%s\\037' "${0##*/}" "$@" "$END" >> "$RECORD"
"""


@dataclass(frozen=True)
class Scratch:
    """A folder in which a shell runs command lines whose only programs are `a` and `b`, which record their words."""

    folder: Path
    programs: Path
    record: Path

    def run(self, shell: str, text: str) -> tuple[list[tuple[str, ...]], set[str]]:
        """The words of each program that `text` starts, and the names of the files that are new or changed."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        (self.folder / "c").write_text("kept", encoding="utf-8")
        self.record.write_bytes(b"")
        environment = {"PATH": str(self.programs), "RECORD": str(self.record), "END": "\x1e", "HOME": str(self.folder)}
        path = shutil.which(shell)
        assert path is not None
        subprocess.run(
            [path, "-c", text],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
        calls = self.record.read_bytes().decode(errors="surrogateescape").split("\x1e\x1f")[:-1]
        changed = {path.name for path in self.folder.iterdir() if not (path.name == "c" and self.is_kept())}
        return [tuple(call.split("\x1f")[:-1]) for call in calls], changed

    def is_kept(self) -> bool:
        """Whether the file that was there before has its text."""
        return (self.folder / "c").is_file() and (self.folder / "c").read_text(encoding="utf-8") == "kept"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    root = tmp_path_factory.mktemp("shells")
    programs = root / "programs"
    programs.mkdir()
    for name in ("a", "b"):
        (programs / name).write_text(RECORDER, encoding="utf-8")
        (programs / name).chmod(0o755)
    return Scratch(root / "folder", programs, root / "record")


def check(scratch: Scratch, text: str) -> CommandLine:
    """Check that no shell starts a program or writes a file of which the parsed command line doesn't know."""
    line = parse_command_line(text, str(scratch.folder))
    if line.problem is not None:
        return line
    known = {part.words for part in line.parts if part.kind == "program"}
    written = {effect.target for effect in line.effects if effect.kind == "write"}
    may_write_any = bool(written & {"/", str(scratch.folder)})
    for shell in SHELLS:
        calls, changed = scratch.run(shell, text)
        if () not in known:
            assert set(calls) <= known, (shell, text, line)
        if not may_write_any:
            assert {f"{scratch.folder}/{name}" for name in changed} <= written, (shell, text, line)
    return line


QUOTED = st.one_of(
    st.text('ab c;|&<>(){}$`"\\*?~#=!\n-', max_size=6).map(lambda text: f"'{text}'"),
    st.text("ab c;|&<>(){}*?~#=!'\n-", max_size=6).map(lambda text: f'"{text}"'),
    st.sampled_from(
        ["\\a", "\\ ", "\\;", "\\$", "\\\\", "\\'", '\\"', "\\`", '"\\a\\"\\\\\\$\\`"', '"\\\n"', "''", '""']
    ),
    st.text("ab=:,.-{}%@", min_size=1, max_size=5),
    st.sampled_from(
        ["$a", "${a}", '"$a"', "$'a'", "$'\\x61'", '$"a"', "{a,b}", "{1..2}", "~", "*", "[ab]", "$((1+1))"]
    ),
)
WORDS = st.lists(st.lists(QUOTED, min_size=1, max_size=4).map("".join), max_size=5)


@given(words=WORDS)
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(words=["\\\\", "'a'\\''b'", "a#b"])
def test_the_words_are_those_that_a_shell_passes(scratch: Scratch, words: list[str]) -> None:
    line = check(scratch, " ".join(["a", *words]))
    programs = [part.words for part in line.parts if part.kind == "program"]
    if line.problem is None and programs and programs[0]:
        for shell in SHELLS:
            assert programs[0] in scratch.run(shell, line.text)[0]


TOKENS = st.sampled_from(
    [
        *(
            "a",
            "a",
            "b",
            "c",
            " ",
            " ",
            " ",
            "\n",
            "\n",
            ";",
            "&",
            "&&",
            "|",
            "||",
            "(",
            ")",
            "{",
            "}",
            "{ ",
            " }",
            "'",
        ),
        *(
            '"',
            "\\",
            "`",
            "$(",
            ")",
            "$",
            "$a",
            "${a",
            "#",
            " #",
            "<",
            ">",
            ">>",
            "<<",
            "<<a\n",
            "\na\n",
            "<<'a'\n",
            "2>",
        ),
        *(">&", "&>", "<(", "=", "a=", "!", "! ", "-", "*", "~", "[", "]", "[ ", " ]", "[[ ", " ]]", "((", "))", "$(("),
        *(
            "if ",
            "then ",
            "fi",
            "for a in ",
            "do ",
            "done",
            "case a in ",
            "a) ",
            ";;",
            "esac",
            "else ",
            "eval ",
            "exec ",
        ),
        *(
            "command ",
            "time ",
            "trap ",
            "$'",
            '$"',
            "\\\n",
            "\t",
            "|&",
            "<<<",
            ": ",
            "cd ",
            "\r",
            "{a,b}",
            "\u00a0",
            "é",
        ),
        *("else\n", "if\n", "then\n"),
    ]
)


@given(tokens=st.lists(TOKENS, min_size=1, max_size=14))
@example(tokens=[">&", '"', "<<'a'\n", '$"'])
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_shell_starts_a_program_that_was_not_found(scratch: Scratch, tokens: list[str]) -> None:
    check(scratch, "".join(tokens))
