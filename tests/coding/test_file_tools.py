"""`read_file`, `write_file` and `edit_file`, called as a model calls them, on files as hostile as they come."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from called_tools import call_tool

from ferrule.coding.files.changes import describe_os_error
from ferrule.coding.files.tools import make_file_tools
from ferrule.coding.workspace import Workspace
from ferrule.conversation import ToolCall, ToolResult
from ferrule.execution import Decision, Executor, Policy
from ferrule.tools.intent import Diff
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope

EDITED = "def f():\n    return 1\n\n\ndef g():\n    return 1\n"


class Caller:
    """Calls the tools of one workspace, which remember from call to call."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.workspace = Workspace(folder, **settings)
        self.tools = make_file_tools(self.workspace)

    async def read(self, path: str, **arguments: Any) -> ToolResult:
        return await call_tool(self.tools, "read_file", path=path, **arguments)

    async def write(self, path: str, content: str, **settings: Any) -> ToolResult:
        return await call_tool(self.tools, "write_file", path=path, content=content, **settings)

    async def edit(self, path: str, old: str, new: str, **settings: Any) -> ToolResult:
        return await call_tool(self.tools, "edit_file", path=path, edits=[{"old": old, "new": new}], **settings)

    async def edit_all(self, path: str, *edits: dict[str, Any]) -> ToolResult:
        return await call_tool(self.tools, "edit_file", path=path, edits=list(edits))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    folder.mkdir()
    (folder / "a.py").write_text(EDITED)
    return folder


@pytest.fixture
def caller(project: Path) -> Caller:
    return Caller(project)


@pytest.fixture(autouse=True)
def leaves_nothing_temporary(project: Path) -> Iterator[None]:
    yield
    assert not [path for path in project.rglob("*") if ".ferrule-" in path.name]


# Reading


@pytest.mark.parametrize("path", ["a.py", "./a.py", "sub/../a.py", "{project}/a.py", "a.py/"])
async def test_lines_are_numbered_from_1(caller: Caller, project: Path, path: str) -> None:
    result = await caller.read(path.format(project=project))
    assert result.text == "1\tdef f():\n2\t    return 1\n3\t\n4\t\n5\tdef g():\n6\t    return 1"


async def test_a_part_is_read_by_offset_and_limit(caller: Caller) -> None:
    assert (await caller.read("a.py", offset=5, limit=1)).text == (
        "5\tdef g():\n[lines 5 to 5 of 6; 1 more line; go on with offset=6]"
    )
    assert (await caller.read("a.py", offset=6, limit=100)).text == "6\t    return 1"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"offset": 0}, "offset: got the number 0; expected an integer of at least 1"),
        ({"offset": -1}, "expected an integer of at least 1"),
        ({"limit": 0}, "limit: got the number 0"),
        ({"offset": 7}, "a.py has 6 lines, so there is no line 7: give an offset up to 6"),
        ({"offset": 10**30}, "so there is no line"),
    ],
)
async def test_lines_that_are_not_there(caller: Caller, arguments: dict[str, int], expected: str) -> None:
    result = await caller.read("a.py", **arguments)
    assert result.is_error
    assert expected in result.text


async def test_a_long_file_is_cut_between_lines_and_says_how_to_go_on(caller: Caller, project: Path) -> None:
    (project / "long.txt").write_text("".join(f"this is line {number}\n" for number in range(1, 20_001)))
    text = (await caller.read("long.txt")).text
    assert len(text) < 30_000
    last = text.splitlines()[-2].partition("\t")
    assert text.endswith(f"of 20,000; {20_000 - int(last[0]):,} more lines; go on with offset={int(last[0]) + 1}]")
    going_on = (await caller.read("long.txt", offset=int(last[0]) + 1)).text
    assert going_on.startswith(f"{int(last[0]) + 1}\tthis is line {int(last[0]) + 1}\n")


async def test_a_line_without_end_is_cut(caller: Caller, project: Path) -> None:
    (project / "minified.js").write_text("x" * 3_000_000)
    text = (await caller.read("minified.js")).text
    assert len(text) < 3000
    assert "[2,998,000 more characters in this line]" in text


async def test_an_empty_file(caller: Caller, project: Path) -> None:
    (project / "empty").touch()
    assert (await caller.read("empty")).text == "[empty is empty]"
    assert (await caller.write("empty", "now\n")).text.startswith("File updated: empty (4 bytes)")


async def test_a_missing_file_names_similar_ones(caller: Caller, project: Path) -> None:
    (project / "src").mkdir()
    (project / "src" / "util.py").touch()
    assert (await caller.read("A.py")).text == "error: Error reading A.py: there is no such file. Did you mean a.py?"
    assert "Did you mean src/util.py?" in (await caller.read("lib/util.py")).text
    assert "See list_files" in (await caller.read("nothing-like-it")).text
    (project / ".env.local").touch()
    assert ".env.local" not in (await caller.read("env.local")).text


async def test_a_folder(caller: Caller, project: Path) -> None:
    (project / "src").mkdir()
    assert (await caller.read("src")).text == "error: src is a folder: see what is in it with list_files"
    assert (
        "it is a folder" in (await caller.write("src", "x")).text
        or "is a folder" in (await caller.write("src", "x")).text
    )


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.out", b"\x7fELF\x02\x01\x00\x00", "a program or library (8 bytes)"),
        ("a.zip", b"PK\x03\x04\x00\x00", "a zip archive"),
        ("a.bin", bytes(range(256)) * 10, "binary data (2.5 KB)"),
        ("a.db", b"SQLite format 3\x00" + bytes(100), "an SQLite database"),
    ],
)
async def test_binary_files_are_named(caller: Caller, project: Path, name: str, data: bytes, kind: str) -> None:
    (project / name).write_bytes(data)
    result = await caller.read(name)
    assert result.is_error
    assert f"{name} is not text but {kind}" in result.text
    assert "which can't be edited" in (await caller.edit(name, "a", "b")).text
    assert (project / name).read_bytes() == data


async def test_a_huge_file_is_not_read_into_memory(caller: Caller, project: Path) -> None:
    with (project / "huge").open("wb") as file:
        file.truncate(1 << 40)
    assert "huge has 1,024.0 GB, too much to read at once" in (await caller.read("huge")).text


async def test_a_large_image_is_not_shown(caller: Caller, project: Path) -> None:
    (project / "big.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(6_000_000))
    assert "is an image of 5.7 MB, more than the 5.0 MB that can be shown" in (await caller.read("big.png")).text


@pytest.mark.parametrize(
    ("data", "shown", "note"),
    [
        ("héllo\n".encode(), "héllo", ""),
        (b"\xef\xbb\xbfone\n", "one", "utf-8 with a byte order mark"),
        ("日本\n".encode("utf-16"), "日本", "utf-16-le with a byte order mark"),
        ("plain words\n".encode("utf-16-be"), "plain words", "utf-16-be"),
        (
            "привет, мир, как дела сегодня?\n".encode("cp1251"),
            "привет",
            "encoding cp1251, assumed since it isn't UTF-8",
        ),
        ("ñ ñ ñ".encode() + b"\xff\n", "ñ ñ ñ\\xff", "1 invalid byte, shown as \\x.., is kept"),
        (b"a\r\nb\r\n", "a", "CRLF line ends are kept"),
        (b"a\r\nb\n\n\n", "a", "line ends are mixed, and kept"),
        (b"a\rb\r", "a\n2\tb", "CR line ends are kept"),
        (b"no end", "no end", "no newline at the end of the file"),
    ],
)
async def test_encodings_are_detected_said_and_kept(
    caller: Caller, project: Path, data: bytes, shown: str, note: str
) -> None:
    (project / "text").write_bytes(data)
    text = (await caller.read("text")).text
    assert text.startswith(f"1\t{shown}")
    assert (f"[{note}]" in text) if note else "[" not in text
    first = shown.partition("\n")[0].partition("\\")[0]
    changed = await caller.edit("text", first, "ja" + first)
    assert not changed.is_error, changed.text
    undone = await caller.edit("text", "ja" + first, first)
    assert not undone.is_error, undone.text
    assert (project / "text").read_bytes() == data


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
async def test_what_is_no_file_is_not_opened(caller: Caller, project: Path, kind: str) -> None:
    import socket

    path = project / "odd"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif os.geteuid() != 0:
        pytest.skip("only root can make a device")
    else:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    word = {"fifo": "a pipe", "socket": "a socket", "device": "a device"}[kind]
    for result in (await caller.read("odd"), await caller.edit("odd", "a", "b"), await caller.write("odd", "b")):
        assert f"odd is {word}, not a file" in result.text


@pytest.mark.parametrize("path", ["", " ", "a\0b", "x" * 300, "x/" * 3000, "a.py/x"])
async def test_unusable_paths_are_one_line(caller: Caller, path: str) -> None:
    for result in (await caller.read(path), await caller.write(path, "x"), await caller.edit(path, "a", "b")):
        assert result.is_error
        assert len(result.text.splitlines()) == 1
        assert len(result.text) < 800


# Writing


async def test_a_file_is_created_with_its_folders(caller: Caller, project: Path) -> None:
    assert (await caller.write("new/deep/é.txt", "é\n")).text == "File created: new/deep/é.txt (3 bytes)"
    assert (project / "new/deep/é.txt").read_text() == "é\n"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((project / "new/deep/é.txt").stat().st_mode) == 0o666 & ~mask


async def test_an_existing_file_is_read_before_it_is_replaced(caller: Caller, project: Path) -> None:
    assert "you haven't read it" in (await caller.write("a.py", "x")).text
    assert (project / "a.py").read_text() == EDITED
    await caller.read("a.py", limit=1)
    result = await caller.write("a.py", "def f():\n    return 2\n")
    assert result.text == (
        "File updated: a.py (22 bytes)\n\nDiff:\n@@ -1,6 +1,2 @@\n def f():\n-    return 1\n-\n-\n-def g():\n"
        "-    return 1\n+    return 2"
    )
    assert "has this content already" in (await caller.write("a.py", "def f():\n    return 2\n")).text


async def test_a_file_that_is_no_longer_what_was_read_is_kept(caller: Caller, project: Path) -> None:
    await caller.read("a.py")
    before = (project / "a.py").stat()
    (project / "a.py").write_text(EDITED.replace("1", "9"))
    os.utime(project / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    for result in (await caller.write("a.py", "x"), await caller.edit("a.py", "def f", "def h")):
        assert "a.py has changed since you read it" in result.text
    assert "9" in (project / "a.py").read_text()
    await caller.read("a.py")
    assert not (await caller.edit("a.py", "def f", "def h")).is_error


async def test_only_another_time_is_no_change(caller: Caller, project: Path) -> None:
    await caller.read("a.py")
    os.utime(project / "a.py")
    assert not (await caller.write("a.py", "x")).is_error


async def test_mode_attributes_and_links_are_kept(caller: Caller, project: Path) -> None:
    (project / "a.py").chmod(0o751)
    os.setxattr(project / "a.py", "user.kept", b"1")
    (project / "link.py").symlink_to("a.py")
    await caller.read("link.py")
    assert (await caller.edit("link.py", "def f", "def h")).text.startswith("File updated: a.py")
    assert (project / "link.py").readlink() == Path("a.py")
    assert stat.S_IMODE((project / "a.py").stat().st_mode) == 0o751
    assert os.getxattr(project / "a.py", "user.kept") == b"1"


async def test_the_final_newline_and_crlf_are_kept_when_a_file_is_replaced(caller: Caller, project: Path) -> None:
    (project / "w.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    await caller.read("w.txt")
    await caller.write("w.txt", "one\nnew\ntwo")
    assert (project / "w.txt").read_bytes() == b"\xef\xbb\xbfone\r\nnew\r\ntwo\r\n"


async def test_mixed_line_ends_stay_each_with_its_line(caller: Caller, project: Path) -> None:
    (project / "m.txt").write_bytes(b"a\r\nb\nc\r\nd\ne")
    await caller.read("m.txt")
    await caller.edit("m.txt", "b\nc\nd", "b\nnew\nc\nd")
    assert (project / "m.txt").read_bytes() == b"a\r\nb\nnew\nc\r\nd\ne"
    await caller.write("m.txt", "a\nB\nnew\nc\nd\ne")
    assert (project / "m.txt").read_bytes() == b"a\r\nB\nnew\nc\r\nd\ne"


async def test_a_character_that_the_encoding_lacks(caller: Caller, project: Path) -> None:
    data = "привет, мир, как дела сегодня?\n".encode("cp1251")
    (project / "old.txt").write_bytes(data)
    await caller.read("old.txt")
    result = await caller.edit("old.txt", "мир", "世界")
    assert "'世' (U+4E16) can't be written in cp1251" in result.text
    assert (project / "old.txt").read_bytes() == data
    assert "half of a surrogate pair" in (await caller.write("new.txt", "\ud800")).text


async def test_a_read_only_file_stays(caller: Caller, project: Path) -> None:
    (project / "a.py").chmod(0o444)
    assert "its mode makes it read-only" in (await caller.edit("a.py", "def f", "def h")).text
    assert (project / "a.py").read_text() == EDITED


RUN = """
import asyncio, resource, signal, sys
sys.path.insert(0, sys.argv[2])
from called_tools import call_tool
from ferrule.coding.files.changes import describe_os_error
from ferrule.coding.files.tools import make_file_tools
from ferrule.coding.workspace import Workspace
from ferrule.sandbox.linux import identity, syscalls
tools = make_file_tools(Workspace(sys.argv[1]))
{limit}
edits = [{{"old": "def f", "new": "x" * 5000}}]
for result in (
    asyncio.run(call_tool(tools, "write_file", path="new/b.txt", content="x" * 5000)),
    asyncio.run(call_tool(tools, "edit_file", path="a.py", edits=edits)),
):
    print(result.text)
"""


def run_limited(project: Path, limit: str) -> str:
    """Write and edit in a process of its own, under a limit that applies to all of it."""
    command = [sys.executable, "-c", RUN.format(limit=limit), str(project), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (project / "a.py").read_text() == EDITED
    assert [path.name for path in project.iterdir()] == ["a.py"]
    return done.stdout or done.stderr


def test_a_full_disk_leaves_everything_as_it_was(project: Path) -> None:
    """A limit of the process stands for the disk: both end a write in the middle."""
    limit = "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    assert run_limited(project, limit) == (
        "error: Error writing new/b.txt: it would be too large; nothing was changed\n"
        "error: Error writing a.py: it would be too large; nothing was changed\n"
    )


def test_a_read_only_folder_is_named(project: Path) -> None:
    project.chmod(0o555)
    try:
        # Root obeys modes only without its capabilities.
        text = run_limited(project, "syscalls.invoke(identity.prepare_drop_capabilities(keep=0))")
    finally:
        project.chmod(0o755)
    assert text == (
        "error: Error writing new/b.txt: permission denied; nothing was changed\n"
        "error: Error writing a.py: permission denied; nothing was changed\n"
    )


# Editing


async def test_several_edits_are_all_made_or_none(caller: Caller, project: Path) -> None:
    await caller.read("a.py")
    result = await caller.edit_all("a.py", {"old": "def f", "new": "def F"}, {"old": "def h", "new": "def H"})
    assert "edit 2 of 2: `old` isn't in the file" in result.text
    assert "Nothing was changed" in result.text
    assert (project / "a.py").read_text() == EDITED
    result = await caller.edit_all("a.py", {"old": "def f", "new": "def F"}, {"old": "def g", "new": "def G"})
    assert (project / "a.py").read_text() == EDITED.replace("f()", "F()").replace("g()", "G()").replace("deF", "def")


async def test_several_places_are_refused_with_their_lines(caller: Caller, project: Path) -> None:
    result = await caller.edit("a.py", "    return 1", "    return 2")
    assert "`old` occurs 2 times, at lines 2, 6: quote more lines" in result.text
    result = await caller.edit_all("a.py", {"old": "return 1", "new": "return 2", "replace_all": True})
    assert "[2 occurrences were replaced]" in result.text
    assert (project / "a.py").read_text() == EDITED.replace("1", "2")


async def test_an_unread_file_is_edited_by_exact_text_only(caller: Caller, project: Path) -> None:
    assert "Read the file first" in (await caller.edit("a.py", "def f():  \n    return 1", "x")).text
    assert not (await caller.edit("a.py", "def f():\n    return 1", "def f():\n    return 2")).is_error
    assert "you haven't read it" in (await caller.write("a.py", "x")).text


@pytest.mark.parametrize(
    ("old", "new", "ignored", "expected"),
    [
        (
            "def f():  \n    return 1\t",
            "def f():\n    return 2",
            "white space at line ends",
            "def f():\n    return 2\n",
        ),
        ("def f():\r\n    return 1\r\n", "def f():\r\n    return 2\r\n", "", "def f():\n    return 2\n"),
        (
            "  def f():\n      return 1",
            "  def f():\n      x = 1\n      return x",
            "indentation",
            "def f():\n    x = 1\n    return x\n",
        ),
        (
            "def f():\n\treturn 1",
            "def f():\n\tif x:\n\t\treturn 2",
            "indentation",
            "def f():\n    if x:\n        return 2\n",
        ),
        (
            "1\tdef f():\n2\t    return 1",
            "1\tdef f():\n2\t    return 2",
            "the line numbers",
            "def f():\n    return 2\n",
        ),
    ],
)
async def test_a_forgiving_match_is_reported(
    caller: Caller, project: Path, old: str, new: str, ignored: str, expected: str
) -> None:
    await caller.read("a.py")
    text = (await caller.edit("a.py", old, new)).text
    if ignored:
        assert f"[lines 1 to 2 matched only after ignoring {ignored}]" in text
    else:
        assert "matched" not in text
    assert (project / "a.py").read_text() == EDITED.replace("def f():\n    return 1\n", expected)


async def test_quotes_and_dashes_that_look_alike(caller: Caller, project: Path) -> None:
    (project / "t.md").write_text("It’s “quoted” – so\nnext\n")
    await caller.read("t.md")
    text = (await caller.edit("t.md", 'It\'s "quoted" - so', "plain")).text
    assert "[line 1 matched only after ignoring the kinds of quotes, dashes and spaces]" in text
    assert (project / "t.md").read_text() == "plain\nnext\n"


async def test_a_forgiving_match_must_be_the_only_one(caller: Caller, project: Path) -> None:
    (project / "t.py").write_text("  x = 1\n\tx = 1\n")
    await caller.read("t.py")
    assert (
        "occurs 2 times, ignoring indentation, at lines 1, 2" in (await caller.edit("t.py", "    x = 1\n", "y\n")).text
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "x", "`old` is empty"),
        ("def f", "def f", "`old` and `new` are the same"),
        (" \n\n \n", "x", "only white space"),
    ],
)
async def test_edits_that_say_nothing(caller: Caller, old: str, new: str, expected: str) -> None:
    await caller.read("a.py")
    assert expected in (await caller.edit("a.py", old, new)).text


async def test_a_repeated_failure_gets_more_help(caller: Caller) -> None:
    await caller.read("a.py")
    first = (await caller.edit("a.py", "def f():\n    return 3", "x")).text
    assert (
        "The nearest is lines 1 to 2 (-: what you gave, +: what is there):\n def f():\n-    return 3\n+    return 1"
        in first
    )
    second = (await caller.edit("a.py", "def f():\n    return 3", "x")).text
    assert "This same edit failed 2 times now" in second
    assert "write_file" in second


async def test_a_miss_in_a_large_file_is_answered_soon(caller: Caller, project: Path) -> None:
    (project / "large.txt").write_text("the same line again\n" * 250_000)
    await caller.read("large.txt", limit=1)
    import time

    began = time.process_time()
    result = await caller.edit("large.txt", "the same line again\n" * 400 + "another line", "x")
    assert "isn't in the file" in result.text
    assert time.process_time() - began < 10  # a quadratic search takes minutes


# Approval


class Approving:
    """Approves of each call, after something else has happened."""

    def __init__(self, meanwhile: Any = None) -> None:
        self.meanwhile, self.requests = meanwhile, []

    async def decide(self, request: Any) -> Decision:
        self.requests.append(request)
        if self.meanwhile is not None:
            self.meanwhile()
        return Decision.allow()


async def test_what_will_be_written_is_shown_before(caller: Caller, project: Path) -> None:
    approver = Approving()
    result = await caller.edit("a.py", "def f", "def h", policy=Policy(profile="ask"), approver=approver)
    assert not result.is_error, result.text
    intent = approver.requests[0].intent
    assert intent.preview == Diff("a.py", EDITED, EDITED.replace("def f", "def h"))
    assert [(effect.kind, effect.target) for effect in intent.effects] == [("write", str(project / "a.py"))]


@pytest.mark.parametrize("change", ["delete", "replace", "link"])
async def test_a_file_that_changes_between_approval_and_write(caller: Caller, project: Path, change: str) -> None:
    (project / "other.txt").write_text(EDITED)

    def meanwhile() -> None:
        (project / "a.py").unlink()
        if change == "replace":
            (project / "a.py").write_text("somebody else's def f\n")
        if change == "link":
            (project / "a.py").symlink_to("other.txt")

    await caller.read("a.py")
    approver = Approving(meanwhile)
    result = await caller.edit("a.py", "def f", "def h", policy=Policy(profile="ask"), approver=approver)
    assert result.is_error
    assert len(result.text.splitlines()) == 1
    assert (project / "other.txt").read_text() == EDITED
    assert "def h" not in "".join(path.read_text() for path in project.iterdir())


async def test_a_refused_path_is_never_asked_about(caller: Caller) -> None:
    approver = Approving()
    for path in (".env", ".git/hooks/pre-commit", "../outside.txt"):
        result = await caller.write(path, "x", policy=Policy(profile="ask"), approver=approver)
        assert result.is_error
    assert approver.requests == []


async def test_errors_of_the_disk_are_words() -> None:
    assert describe_os_error(OSError(errno.ENOSPC, "No space left on device")) == "the disk is full"
    assert describe_os_error(OSError(errno.EROFS, "")) == "the file system is read-only"
    assert describe_os_error(OSError(errno.EMFILE, "Too many open files")) == "too many open files"


async def test_two_edits_of_one_message_to_the_same_file_are_both_made(caller: Caller, project: Path) -> None:
    approver = Approving()
    calls = [
        ToolCall(str(number), "edit_file", json.dumps({"path": "a.py", "edits": [{"old": old, "new": new}]}))
        for number, (old, new) in enumerate([("def f", "def F"), ("def g", "def G")])
    ]
    async with ToolRegistry(caller.tools).open() as bound:
        executor = Executor(bound, policy=Policy(profile="ask"), approver=approver)
        results = await executor.run_all(calls, CallScope())
    assert [result.status for result in results] == ["ok", "ok"]
    assert (project / "a.py").read_text() == EDITED.replace("def f", "def F").replace("def g", "def G")


@pytest.mark.parametrize(
    ("profile", "writes"), [("plan", False), ("ask", False), ("accept-edits", True), ("auto", True), ("all", True)]
)
async def test_profiles(caller: Caller, project: Path, profile: Any, writes: bool) -> None:
    """Nobody can be asked here, so a call that would be asked about is denied."""
    calls = {
        "read_file": {"path": "a.py"},
        "write_file": {"path": "new.txt", "content": "x"},
        "edit_file": {"path": "a.py", "edits": [{"old": "def f", "new": "def h"}]},
        "apply_patch": {"patch": "*** Begin Patch\n*** Delete File: a.py\n*** End Patch"},
    }
    async with ToolRegistry(caller.tools).open() as bound:
        executor = Executor(bound, policy=Policy(profile=profile))
        for name, arguments in calls.items():
            result = await executor.run(ToolCall("1", name, json.dumps(arguments)), CallScope(workspace=project))
            assert (result.status == "ok") is (writes or name == "read_file"), (name, result)
    assert (project / "a.py").exists() is not writes


async def test_a_call_that_a_model_wrote_twice_changes_a_file_once(caller: Caller, project: Path) -> None:
    edits = [{"old": "def g():", "new": "def g():\n    print()"}]
    patch = "*** Begin Patch\n*** Update File: a.py\n@@ def g():\n+    more()\n*** End Patch"
    await caller.read("a.py")
    for name, arguments in (("edit_file", {"path": "a.py", "edits": edits}), ("apply_patch", {"patch": patch})):
        calls = [ToolCall(f"call_{number}", name, json.dumps(arguments)) for number in (1, 2)]
        async with ToolRegistry(caller.tools).open() as bound:
            first, second = await Executor(bound, policy=Policy(profile="all")).run_all(calls, CallScope())
        once = (project / "a.py").read_text()
        assert (first.status, second.status) == ("ok", "retry"), second.text
        assert "a.py: your call before made this very change, so this one did nothing" in second.text
        assert (project / "a.py").read_text() == once
    assert once.count("print()") == once.count("more()") == 1


async def test_a_change_is_made_once_more_after_another_or_after_the_file_was_read(
    caller: Caller, project: Path
) -> None:
    (project / "a.py").write_text("x\n")
    await caller.read("a.py")
    for before in (caller.read("a.py"), caller.edit("a.py", "x\n", "x\nz\n")):
        assert (await caller.edit("a.py", "x\n", "x\ny\n")).status == "ok"
        await before
        assert (await caller.edit("a.py", "x\n", "x\ny\n")).status == "ok"
        await caller.read("a.py")
    assert (project / "a.py").read_text() == "x\ny\nz\ny\ny\ny\n"
