"""A person at a real terminal: what the screen shows, and what comes of the answers."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pexpect
import pyte
import pytest

PROGRAM = Path(__file__).with_name("asking_program.py")
SOURCE = Path(__file__).parents[3] / "src"
PROMPT = r"\[y\]es,\s+\[n\]o\s+REASON[^?]*\?"
ALL = r"to\s+look\s+at\s+one\? "


class Person:
    """Somebody at a terminal of this size, who sees its screen with everything that has scrolled away."""

    def __init__(self, folder: Path, *calls: tuple[str, dict[str, object]], columns: int = 80, **environment: str):
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "VISUAL")}
        self.process = pexpect.spawn(
            sys.executable,
            [str(PROGRAM), str(folder), json.dumps(calls)],
            dimensions=(24, columns),
            encoding="utf-8",
            timeout=30,
            env={
                **kept,
                "PYTHONPATH": str(SOURCE),
                "TERM": "xterm-256color",
                "EDITOR": "",
                "PAGER": "cat",
                **environment,
            },
        )
        self.written = ""
        self.screen = pyte.HistoryScreen(columns, 24, history=10_000, ratio=1)
        self._stream = pyte.Stream(self.screen)

    def see(self, prompt: str = PROMPT) -> str:
        """Wait for a question; returns what was written since the last one, with its escape sequences."""
        self.process.expect(prompt)
        return self._take()

    def type(self, line: str) -> None:
        self.process.sendline(line)

    def finish(self) -> dict[str, list[str]]:
        """What came of the calls."""
        self.process.expect(r'\{"results": .*\}\r\n')
        found = self.process.after
        self._take()
        self.process.wait()
        return json.loads(found)

    @property
    def lines(self) -> list[str]:
        """Every line of the screen, also those above."""
        above = ["".join(line[place].data for place in range(self.screen.columns)) for line in self.screen.history.top]
        return [line.rstrip() for line in [*above, *self.screen.display]]

    def _take(self) -> str:
        text = self.process.before + self.process.after
        self.written += text
        self._stream.feed(text)
        return text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "src").mkdir(parents=True)
    (folder / "src/a.py").write_text("".join(f"line {number}\n" for number in range(1, 10)))
    return folder


def write(path: str, content: str) -> tuple[str, dict[str, object]]:
    return "write_file", {"path": path, "content": content}


def edit(path: str, *edits: tuple[str, str]) -> tuple[str, dict[str, object]]:
    return "edit_file", {"path": path, "edits": [{"old": old, "new": new} for old, new in edits]}


def make_editor(folder: Path, code: str) -> str:
    """An editor that changes `text` of the file `path` by this code."""
    script = folder / "my editor.py"
    lines = ["import pathlib, sys", "path = pathlib.Path(sys.argv[-1])", "text = path.read_text()", code]
    script.write_text("\n".join([*lines, "path.write_text(text)"]))
    return f"{sys.executable} '{script}'"


def test_a_change_is_shown_as_a_coloured_diff_before_it_is_made(folder: Path) -> None:
    person = Person(folder, edit("src/a.py", ("line 5\n", "five\nand a half\n")))
    written = person.see()
    assert person.lines[:13] == [
        "▸ edit_file asks to run",
        "  writes src/a.py  (+2 −1)",
        '  path: "src/a.py"',
        '  edits: [{"old": "line 5\\n", "new": "five\\nand a half\\n"}]',
        "  │ @@ -2,7 +2,8 @@",
        "  │  line 2",
        "  │  line 3",
        "  │  line 4",
        "  │ -line 5",
        "  │ +five",
        "  │ +and a half",
        "  │  line 6",
        "  │  line 7",
    ]
    assert "\x1b[32m  │ +five" in written
    assert "\x1b[31m  │ -line 5" in written
    assert (folder / "src/a.py").read_text().count("line 5") == 1
    person.type("n not like this")
    assert person.finish()["results"] == ["error: denied: not like this"]


def test_without_colours_the_words_say_the_same(folder: Path) -> None:
    person = Person(folder, write("../evil.txt", "x\n"), NO_COLOR="1")
    written = person.see()
    assert "\x1b[3" not in written
    assert any("outside the workspace" in line for line in person.lines)
    assert any("new file, +1" in line for line in person.lines)
    person.type("n")
    assert person.finish()["results"] == ["error: denied: the user said no"]


def test_a_command_stands_whole_before_its_parts(folder: Path) -> None:
    person = Person(folder, ("bash", {"command": "npm test"}))
    person.see()
    assert (
        person.lines[:4]
        == [
            "▸ bash asks to run",
            "  │ $ npm test",
            f"  │ [in {folder}]"[:80],
            "  runs npm test  (may write in the workspace)",
        ]
        or person.lines[-8:]
    )
    assert "  runs npm test  (may write in the workspace)" in person.lines
    person.type("a?")
    person.see()
    assert any('command = "npm test"' in line for line in person.lines)
    person.type("?")
    person.see()
    assert any("y TEXT" in line for line in person.lines)
    person.type("y but only once")
    assert person.finish()["results"] == ["ran npm test\n[the user allowed this call and says: but only once]"]


def test_an_always_can_be_given_for_the_project(folder: Path) -> None:
    person = Person(folder, ("bash", {"command": "npm test"}), ("bash", {"command": "npm test"}))
    person.see(ALL)
    person.type("1 p")
    done = person.finish()
    assert done["results"] == ["ran npm test"] * 2
    assert len(done["saved"]) == 1


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_nothing_passes_for_our_own_lines_at_any_width(folder: Path, columns: int) -> None:
    fake = " " * (columns - 4) + "[y]es, [n]o REASON? y"
    hostile = f"a\x1b[2J\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil\x07b\rrm -rf\u202egnp.exe\u200b猫猫{fake}\x9b31m"
    person = Person(folder, ("send", {"to": hostile, "text": f"{hostile}\n{fake}\n"}), columns=columns)
    while True:
        written = person.see()
        if "more" not in written:
            break
        person.type("m")
    assert "\x1b]" not in person.written
    assert "\x1b[2J" not in person.written
    assert "\x07" not in person.written
    ours = [line for line in person.lines if line]
    assert not any(line.startswith(("[y]es, [n]o REASON? y", "rm -rf")) for line in ours)
    block = [line for line in ours if "猫" in line or "rm" in line]
    assert block
    assert all(line.startswith(("  ", "▸ ")) for line in block)
    person.type("n")
    assert person.finish()["results"] == ["error: denied: the user said no"]


def test_several_calls_are_listed_and_decided_one_by_one(folder: Path) -> None:
    person = Person(
        folder,
        edit("src/a.py", ("line 5\n", "five\n")),
        write("new.txt", "one\ntwo\n"),
        ("bash", {"command": "npm test"}),
        write("../outside.txt", "x"),
    )
    person.see(ALL)
    assert [line for line in person.lines if line[:1] == "▸" or line[4:5].isdigit()][:3] == [
        "▸ 4 calls ask to run",
        "    1  edit_file  src/a.py  +1 −1",
        "    2  write_file  new.txt  new file, +2",
    ]
    assert any(line.startswith("    3  bash  $ npm test ⏎ [in /") for line in person.lines)
    assert "    4  ! outside the workspace: write_file  ../outside.txt  new file, +1" in person.lines
    assert any(line.startswith("There was no room to show call") for line in person.lines)
    person.type("2")
    person.see()
    assert "  │ +two" in person.lines
    person.type("b")
    person.see(ALL)
    person.type("4 n stay inside")
    person.see(ALL)
    assert any(line.startswith("✗   4") for line in person.lines)
    person.type("y")
    person.see(ALL)
    assert any("call 1 was not shown in full" in line for line in person.lines)
    person.type("v")
    person.see(ALL)
    assert "  │ +five" in person.lines
    person.type("y thank you")
    results = person.finish()["results"]
    assert [result.partition("\n")[0] for result in results] == [
        "edited",
        "written",
        "ran npm test",
        "error: denied: stay inside",
    ]
    assert all(result.endswith("says: thank you]") for result in results[:3])
    assert not (folder.parent / "outside.txt").exists()


def test_small_calls_are_shown_whole_and_allowed_by_one_answer(folder: Path) -> None:
    person = Person(folder, write("new.txt", "one\ntwo\n"), ("bash", {"command": "npm test"}))
    person.see(ALL)
    assert {"  │ +two", "  writes new.txt  (new file, +2)"} <= set(person.lines)
    assert "[y]es to all, [n]o REASON to all, [v]iew all, or a NUMBER to look at one?" in person.lines
    person.type("y")
    assert person.finish()["results"] == ["written", "ran npm test"]


def test_a_yes_to_all_is_not_offered_first_where_something_has_no_room(folder: Path) -> None:
    person = Person(folder, write("a", "1\n" * 30), write("b", "2"), write("c", "3\n" * 30))
    person.see(ALL)
    assert {"  │ +2", "There was no room to show calls 1 and 3 in full, which a yes to all waits for."} <= set(
        person.lines
    )
    assert "[v]iew all, then [y]es to all; [n]o REASON to all, or a NUMBER to look at one?" in person.lines
    person.type("v")
    person.see(ALL)
    assert "[y]es to all, [n]o REASON to all, [v]iew all, or a NUMBER to look at one?" in person.lines
    person.type("y")
    assert person.finish()["results"] == ["written"] * 3


@pytest.mark.parametrize(
    ("typed", "result"), [("n not now", "error: denied: not now"), ("\x04", "error: denied: nobody answered")]
)
def test_all_may_be_refused_together(folder: Path, typed: str, result: str) -> None:
    person = Person(folder, write("a", "1"), write("b", "2"))
    person.see(ALL)
    person.type(typed)
    assert person.finish()["results"] == [result] * 2


def test_an_always_for_one_covers_the_others_of_the_list(folder: Path) -> None:
    person = Person(folder, write("src/b.py", "1\n" * 14), write("src/c.py", "2"), write("d.py", "3"))
    person.see(ALL)
    person.type("1 a")
    person.see(ALL)
    assert any("it was not shown in full; 1 shows it" in line for line in person.lines)
    person.type("1")
    person.see()
    person.type("a")
    person.see()
    assert any("d.py" in line for line in person.lines)
    person.type("n")
    assert person.finish()["results"] == ["written", "written", "error: denied: the user said no"]


def test_a_file_is_edited_in_the_editor_and_shown_again(folder: Path) -> None:
    log = folder.parent / "log"
    editor = make_editor(
        folder.parent,
        "modes = [one.stat().st_mode for one in (path, path.parent)]\n"
        f"pathlib.Path({str(log)!r}).write_text(f'{{path}} {{modes[0]:o}} {{modes[1]:o}}')\n"
        "text = text.replace('two', 'zwei')",
    )
    person = Person(folder, write("src/new.py", "one\ntwo\n"), VISUAL=editor)
    person.see()
    person.type("e")
    person.see()
    assert "▸ write_file asks to run, edited" in person.lines
    assert "  │ +zwei" in person.lines
    person.type("y")
    note = "[the user changed the arguments before the call was run; content:\n@@ -1,2 +1,2 @@\n one\n-two\n+zwei]"
    assert person.finish()["results"] == [f"written\n{note}"]
    assert (folder / "src/new.py").read_text() == "one\nzwei\n"
    path, mode, folder_mode = log.read_text().split()
    assert Path(path).name == "new.py"
    assert (stat.S_IMODE(int(mode, 8)), stat.S_IMODE(int(folder_mode, 8))) == (0o600, 0o700)
    assert not Path(path).parent.exists()


def test_the_result_of_an_edit_is_what_is_edited(folder: Path) -> None:
    person = Person(
        folder,
        edit("src/a.py", ("line 5\n", "five\n")),
        EDITOR=make_editor(folder.parent, "text = text.replace('line 7', 'seven')"),
    )
    person.see()
    person.type("e")
    person.see()
    assert "  │ +five" in person.lines
    assert "  │ +seven" in person.lines
    person.type("y")
    result = person.finish()["results"][0]
    assert result.startswith("edited\n[the user changed the arguments before the call was run; edits: ")
    assert "seven" in result
    text = (folder / "src/a.py").read_text()
    assert ("five" in text, "seven" in text, "line 7" in text) == (True, True, False)


def test_a_command_is_edited_as_one(folder: Path) -> None:
    editor = make_editor(folder.parent, "assert path.suffix == '.sh'; text = text.replace('tset', 'test') + '\\n'")
    person = Person(folder, ("bash", {"command": "npm tset"}), EDITOR=editor)
    person.see()
    person.type("e")
    person.see()
    person.type("y")
    assert person.finish()["results"] == [
        'ran npm test\n[the user changed the arguments before the call was run; command: "npm tset" → "npm test"]'
    ]


def test_other_arguments_are_edited_as_a_readable_file(folder: Path) -> None:
    editor = make_editor(folder.parent, "assert 'one\\ntwo' in text; text = text.replace('count = 3', 'count = 2')")
    person = Person(folder, ("send", {"to": "all", "text": "one\ntwo\n", "count": 3}), EDITOR=editor)
    person.see()
    person.type("e")
    person.see()
    person.type("y")
    assert person.finish()["results"][0].startswith("2 × 'one\\ntwo\\n' to all\n[the user changed")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("sys.exit(3)", "ended with status 3; nothing was changed"),
        ("pass", "nothing was changed"),
        ("path.write_bytes(b'\\xff'); sys.exit(0)", "what was saved is not UTF-8"),
        ("text = 'to = '", "not valid TOML"),
        ("text = 'to = 5'", "not accepted"),
    ],
)
def test_an_edit_that_can_not_be_used_leads_back_to_the_question(folder: Path, code: str, said: str) -> None:
    person = Person(folder, ("send", {"to": "all"}), EDITOR=make_editor(folder.parent, code))
    person.see()
    person.type("e")
    person.see()
    assert any(said in line for line in person.lines)
    person.type("y")
    assert person.finish()["results"] == ["1 × '' to all"]


@pytest.mark.parametrize(
    ("editor", "said"),
    [("", "no editor is set"), ("no-such-editor-here", "can't be found"), ("vi '", "can't be read as a command")],
)
def test_without_an_editor_the_arguments_are_written_on_one_line(folder: Path, editor: str, said: str) -> None:
    person = Person(folder, ("send", {"to": "all"}), EDITOR=editor)
    person.see()
    person.type("e")
    person.see(r"as\s+one\s+line\s+of\s+JSON: ")
    assert said in " ".join(person.lines)
    person.type('{"to": "me"}')
    person.see()
    person.type("y")
    assert person.finish()["results"][0].startswith("1 × '' to me\n")


def test_what_was_edited_wrongly_is_there_when_the_editor_is_opened_again(folder: Path) -> None:
    counter = folder.parent / "count"
    code = (
        f"count = pathlib.Path({str(counter)!r})\n"
        "if count.exists(): assert 'valuable' in text; text = 'to = \"valuable\"'\n"
        "else: count.touch(); text = 'to = valuable'"
    )
    person = Person(folder, ("send", {"to": "all"}), EDITOR=make_editor(folder.parent, code))
    person.see()
    person.type("e")
    person.see()
    person.type("e")
    person.see()
    person.type("y")
    assert person.finish()["results"][0].startswith("1 × '' to valuable\n")
