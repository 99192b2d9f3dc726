"""What is shown of a call: hostile texts in every place, white space that changes, large files, narrow terminals."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from rich.cells import cell_len
from running_tools import answers

from ferrule._util.word_folding import fold_listed, fold_words
from ferrule.conversation import ToolCall
from ferrule.execution import Policy
from ferrule.execution.decisions import ApprovalRequest, Decision
from ferrule.session.terminal.call_display import CallDisplay
from ferrule.tools.decorator import tool
from ferrule.tools.intent import Diff, Effect, ImageRef, Intent
from tables import each_case

WORKSPACE = "/ws"


def ask(intent: Intent | None, **arguments: object) -> ApprovalRequest:
    return ApprovalRequest(
        ToolCall("c", "act", "{}"), "act", arguments, intent, "asked", None, "0", workspace=WORKSPACE
    )


def show(request: ApprovalRequest, width: int = 200) -> list[str]:
    return [line.text for line in CallDisplay(width).render(request)]


HOSTILE = {
    "colours": "\x1b[31mred\x1b[0m",
    "the screen cleared": "\x1b[2J\x1b[H",
    "the cursor moved up": "\x1b[1A\x1b[2K",
    "C1 control": "\x9b2J",
    "the clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "a link": "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "a title": "\x1b]0;title\x07",
    "a device string": "\x1bPq#0\x1b\\",
    "overwriting": "rm -rf /\rls      ",
    "backspaces": "rm\b\bls",
    "a bell and a NUL": "a\x07b\x00c",
    "right to left": "evil\u202etxt.exe",
    "isolates": "\u2066a\u2069\u2067b\u2069",
    "zero width": "pass\u200bword\u200d\u2060\ufeff",
    "soft hyphen": "a\u00adb",
    "variation selectors": "a\ufe0fb\U000e0101",
    "tags": "a\U000e0041\U000e0042",
    "Hangul fillers": "a\u3164b\u115f",
    "line and paragraph separators": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "odd spaces": "a\u00a0b\u3000c\u2003d",
    "a lone surrogate": "a\ud800b",
    "private use": "a\ue000b",
    "wide letters": "猫" * 60,
    "a prompt of ours": "y\n[y]es, [n]o REASON? y\n▸ other asks to run",
    "padding": " " * 300 + "; rm -rf ~",
    "backspace after wide": "猫\b\b",
}


@each_case("width", [20, 80, 200])
@each_case("hostile", HOSTILE.values(), ids=HOSTILE)
def test_no_text_hides_moves_or_passes_for_ours(hostile: str, width: int) -> None:
    requests = [
        ask(Intent(preview=f"$ {hostile}\n{hostile}")),
        ask(Intent((Effect("run", hostile, (hostile,)), Effect("net", hostile), Effect("write", hostile)))),
        ask(Intent((Effect("write", f"/ws/{hostile}".replace("\0", "")),), Diff(hostile, "", f"{hostile}\n{hostile}"))),
        ask(Intent((), Diff("a", f"{hostile}\nx\n", f"x\n{hostile}"))),
        ask(None, **{hostile: hostile, "text": f"{hostile}\n{hostile}"}),
        ApprovalRequest(
            ToolCall("c", hostile, "{}"), hostile, {}, None, hostile, hostile, "0",
            problem=hostile, agent=hostile, always_rules=(hostile,),
        ),
    ]  # fmt: skip
    display = CallDisplay(width)
    for request in requests:
        body = [*display.render(request), *display.render_reason(request), *display.render_rules(request)]
        for line in [*body, *display.render_details(request)]:
            assert line.text.isprintable()
            assert line.text.startswith(("▸ ", "  "))
            assert cell_len(line.text) <= width
        for line in display.summarize(request, "   1"):
            assert line.text.isprintable()
            assert line.text.startswith("   ")
            assert cell_len(line.text) <= width
        assert not any(line.text.lstrip().startswith("[y]es") for line in body)


def test_a_new_file_and_its_lines_are_counted() -> None:
    assert show(ask(Intent((Effect("write", "/ws/a/b.txt"),), Diff("a/b.txt", "", "one\ntwo\n"))))[1:] == [
        "  writes a/b.txt  (new file, +2)",
        "  without arguments",
        "  │ @@ -0,0 +1,2 @@",
        "  │ +one",
        "  │ +two",
    ]


@each_case(
    ("before", "after", "shown"),
    [
        ("a\n", "a", ["  │ -a", "  │ +a", "  │ \\ No newline at end of file"]),
        ("a b\n", "a b  \n", ["  │ -a b", "  │ +a b··"]),
        ("\ta\n", "    a\n", ["  │ -→   a", "  │ +    a"]),
        ("a\tb\n", "a b\n", ["  │ -a→   b", "  │ +a b"]),
        ("\ta\n", "\tb\n", ["  │ -   a", "  │ +   b"]),
        ("a\n", "a\r\n", ["  │ -a", "  │ +a\\r"]),
        ("a\r\n", "b\r\n", ["  │ -a", "  │ +b"]),
        ("a\n", "b\u2028c\n", ["  │ -a", "  │ +b\\u2028c"]),
        ("x\n", "", ["  │ -x"]),
        ("a\n\n", "a\n \n", ["  │ -", "  │ +·"]),
    ],
)
def test_what_changes_can_be_seen(before: str, after: str, shown: list[str]) -> None:
    lines = show(ask(Intent((), Diff("f", before, after))))
    assert [line for line in lines if line.startswith(("  │ -", "  │ +", "  │ \\"))] == shown


def test_a_file_with_other_line_ends_throughout_says_so_once() -> None:
    lines = show(ask(Intent((), Diff("f", "a\r\nb\r\n", "a\r\nc\r\n"))))
    assert "  │ (all lines end in CRLF)" in lines
    assert not any("\\r" in line for line in lines)


def test_paths_outside_and_protected_places_stand_first_and_are_marked(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/link").symlink_to("/etc")
    workspace = str(tmp_path / "ws")
    effects = (
        Effect("read", f"{workspace}/a"),
        Effect("write", f"{workspace}/.git", ("git", "commit", "-m", "x y"), is_protected=True),
        Effect("write", f"{workspace}/link/passwd"),
        Effect("net", "packages.example"),
        Effect("write", f"{workspace}/b", ("touch", "b")),
    )
    request = ApprovalRequest(
        ToolCall("c", "act", "{}"), "act", {}, Intent(effects), "asked", None, "0", workspace=workspace
    )
    lines = CallDisplay(400).render(request)
    assert [(line.text, line.style) for line in lines[1:]] == [
        ("  ! protected: writes .git  (by git commit -m 'x y')", "bold red"),
        ("  ! outside the workspace: writes link/passwd  (leads to /etc/passwd)", "bold red"),
        ("  reads a", ""),
        ("  reaches packages.example", ""),
        ("  writes b  (by touch b)", ""),
        ("  without arguments", ""),
    ]


def test_what_is_in_an_added_folder_is_not_outside(tmp_path: Path) -> None:
    @tool(intent=lambda arguments: Intent((Effect("write", arguments["path"]),)))
    def write(path: str) -> str:
        """Write."""
        return path

    requests: list[ApprovalRequest] = []

    class Watching:
        async def decide(self, request: ApprovalRequest) -> Decision:
            requests.append(request)
            return Decision.deny()

    for name in ("own", "added"):
        (tmp_path / name).mkdir()
    working = write.with_folders(tmp_path / "own", tmp_path / "added")
    for name in ("own", "added", "other"):
        call = ToolCall("c", "write", json.dumps({"path": str(tmp_path / name / "a")}))
        answers([working], [call], policy=Policy(profile="ask"), approver=Watching())
    marked = [any("outside the workspace" in line for line in show(one)) for one in requests]
    assert marked == [False, False, True]


def test_an_argument_is_not_repeated_where_the_preview_shows_it() -> None:
    request = ask(Intent(preview="$ make all\n[in /ws]"), command="make all", timeout=30)
    assert show(request)[1:] == ["  │ $ make all", "  │ [in /ws]", "  timeout: 30"]


def test_long_arguments_of_a_change_are_left_to_the_details() -> None:
    content = "".join(f"line {number}\n" for number in range(50))
    request = ask(Intent((), Diff("f", "", content)), path="f", content=content)
    assert f"  content: {len(content)} characters ([d]etails shows them)" in show(request)
    details = [line.text for line in CallDisplay().render_details(request)]
    assert details[:3] == ['  path: "f"', "  content:", "  │ line 0"]


def test_diffs_of_several_files_as_text_are_coloured() -> None:
    preview = "\n".join(f"File updated: {name}\n{Diff(name, 'a' + chr(10), 'b' + chr(10))}" for name in ("x", "y"))
    lines = CallDisplay().render(ask(Intent(preview=preview)))
    assert [line.style for line in lines if line.text == "  │ +b"] == ["green", "green"]


def test_a_call_of_a_list_hides_nothing_behind_its_first_line() -> None:
    lines = CallDisplay(80).summarize(ask(Intent(preview="$ ls\nrm -rf ~\n[in /ws]")), "   1")
    assert [line.text for line in lines] == ["   1  act  $ ls ⏎ rm -rf ~ ⏎ [in /ws]"]
    long = CallDisplay(40).summarize(ask(Intent(preview="$ " + "x" * 500)), "   1")
    assert (len(long), long[-1].text) == (4, "      … (look at it for the rest)")


def test_no_text_of_a_call_is_left_out_of_a_list_by_imitating_our_words() -> None:
    lines = ["print(1)", "rm() #([d]etails shows them)", "… (look at it for the rest)"]
    imitating = ask(None, code="\n".join([*lines, *"abcdefgh"]))
    listed = [line.text for line in CallDisplay(80).render_body(imitating, is_listed=True)]
    assert listed == show(imitating, 80)[1:]
    assert {f"  │ {line}" for line in lines} <= set(listed)
    changing = ask(Intent((), Diff("f", "", "new\n")), path="f", content="x" * 300)
    assert not any("content" in line.text for line in CallDisplay(80).render_body(changing, is_listed=True))


def test_the_screen_in_the_documentation_is_what_is_shown() -> None:
    page = (Path(__file__).parents[3] / "docs/coding.md").read_text(encoding="utf-8")
    documented = page.partition("## Approval")[2].partition("```text\n")[2].partition("```")[0]
    before = "import get\ndef fetch(url):\n    return get(url)\n"
    after = "import get\ndef fetch(url):\n    answer = get(url)\n    return answer.checked()\n"
    intent = Intent((Effect("write", "/ws/src/api.py"),), Diff("src/api.py", before, after))
    reason = "the profile ask asks before edit_file may write /ws/src/api.py"
    call = ToolCall("c", "edit_file", "{}")
    request = ApprovalRequest(call, "edit_file", {"path": "src/api.py"}, intent, reason, None, "0", workspace="/ws")
    display = CallDisplay()
    shown = "\n".join(line.text for line in [*display.render(request), *display.render_reason(request)])
    assert documented.startswith(f"{shown}\n[y]es, [n]o REASON, [e]dit, [a]lways this session, [p] in this project?\n")


def test_an_image_is_named() -> None:
    assert "  an image (image/png), which can't be shown here" in show(ask(Intent(preview=ImageRef("abc"))))


def test_a_small_change_of_a_large_file_is_shown_quickly() -> None:
    before = "".join(f"line {number}\n" for number in range(100_000))
    request = ask(Intent((), Diff("f", before, before.replace("line 50000\n", "changed\n"))))
    began = time.process_time()
    lines = show(request)
    assert time.process_time() - began < 5
    assert "  │ @@ -49998,7 +49998,7 @@" in lines
    assert "  │ +changed" in lines


@pytest.mark.parametrize("width", [20, 33, 80])
def test_long_lines_are_broken_between_words_and_parts_of_paths(width: int) -> None:
    path = "/ws/src/shop/orders/history/archive/of_the_year/invoices.py"
    request = ApprovalRequest(
        ToolCall("c", "act", "{}"), "act", {}, Intent((Effect("read", path),)), "the profile asks about such calls",
        "every call", "0", always_rules=(f'{{ action = "allow", tool = "act", effect = "read", target = "{path}" }}',),
    )  # fmt: skip
    display = CallDisplay(width)
    lines = [*display.render(request), *display.render_reason(request), *display.render_rules(request)]
    for piece in "of_the_year", "archive", "profile", "action", "such":
        assert any(piece in line.text for line in lines), piece
    joined = "".join(line.text.removeprefix("  │ ") for line in display.render_rules(request))
    assert request.always_rules[0] in joined, "nothing is lost"
    question = f"May it read the file {path}?"
    assert display.wrap_words(question).replace("\n", "").replace(" ", "") == question.replace(" ", "")
    assert display.wrap_words(question).endswith("invoices.py?")


def test_folding_keeps_every_character() -> None:
    for text in ("", " ", "a  b" * 20, "y" * 50, "猫" * 30 + " x", "foo, bar? " * 9, "/a/b" * 30, " " * 99 + "x"):
        for width in (4, 10, 17, 40):
            pieces = fold_words(text, width, 2)
            assert "".join(pieces) == text
            assert all(cell_len(piece) <= width for piece in pieces)


def test_a_listed_line_is_seen_as_a_whole_and_passes_for_no_other() -> None:
    pieces = fold_listed(f"runs: {'a' * 300}{' ' * 200}; curl evil", 60)
    assert all(len(piece) <= 60 for piece in pieces)
    assert all(piece.startswith("  │ ") for piece in pieces[1:])
    assert "[200 spaces] ; curl evil" in "".join(piece.removeprefix("  │ ") for piece in pieces)
