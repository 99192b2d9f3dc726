"""Encodings and line ends of files round-trip through every edit; and diffs of two texts are true."""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ferrule._util.line_diff import diff_texts
from ferrule._util.spliced_bytes import SplicedBytes
from ferrule.coding.files.edits import Edit, apply_edits
from ferrule.coding.files.records import hash_content
from ferrule.coding.files.text_files import TextFile, decode_file
from ferrule.errors import ToolFailed

WORDS = st.text(st.sampled_from("abc é\t“日😀"), max_size=6)
ENDS = st.sampled_from(["\n", "\r\n"])
FILES = st.lists(st.tuples(WORDS, ENDS), max_size=12)
ENCODINGS = st.sampled_from([
    ("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"),
    ("utf-32-le", b"\xff\xfe\x00\x00"), ("utf-32-be", b"\x00\x00\xfe\xff"),
])  # fmt: skip


@given(st.binary(max_size=300))
@example(b"\xff\xfe")
@example(b"\xef\xbb\xbf\xff")
@example(b"a\x00b\x00\n\x00")
@settings(max_examples=500, deadline=None)
def test_any_bytes_are_binary_or_come_back_as_they_were(data: bytes) -> None:
    file = decode_file(data)
    assert file is None or file.encode() == data


@given(FILES, ENCODINGS, st.data())
@settings(max_examples=400, deadline=None)
def test_an_edit_changes_nothing_else(
    lines: list[tuple[str, str]], encoding: tuple[str, bytes], data: st.DataObject
) -> None:
    raw = "".join(word + line_end for word, line_end in lines)
    name, mark = encoding
    file = decode_file(mark + raw.encode(name))
    assert file is not None
    assert (file.raw, file.encoding, file.bom) == (raw, name, mark)
    start = data.draw(st.integers(0, len(file.text)))
    end = data.draw(st.integers(start, len(file.text)))
    new = data.draw(WORDS.map(lambda word: word.replace(" ", "\n")))
    changed = file.replace(start, end, new)
    assert changed.text == file.text[:start] + new + file.text[end:]
    assert decode_file(changed.encode()) is not None
    # The lines before and after keep their own ends.
    before = "".join(word + line_end for word, line_end in lines[: file.text.count("\n", 0, start)])
    after = "".join(word + line_end for word, line_end in lines[file.text.count("\n", 0, end) + 1 :])
    assert changed.raw.startswith(before)
    assert changed.raw.endswith(after)


@given(FILES, st.data())
@settings(max_examples=300, deadline=None)
def test_exact_edits_are_those_of_the_text(lines: list[tuple[str, str]], data: st.DataObject) -> None:
    file = TextFile("".join(word + line_end for word, line_end in lines))
    start = data.draw(st.integers(0, len(file.text)))
    old = file.text[start : start + data.draw(st.integers(1, 20))]
    new = data.draw(WORDS)
    for replace_all in (False, True):
        try:
            edited = apply_edits(file, [{"old": old, "new": new, "replace_all": replace_all}])
        except ToolFailed:
            assert not old or old == new or (file.text.count(old) > 1 and not replace_all)
        else:
            assert edited.file.text == file.text.replace(old, new)


@given(st.text(st.sampled_from("ab\r\n"), max_size=30), st.data())
@settings(max_examples=400, deadline=None)
def test_a_text_in_ascii_is_edited_as_its_bytes_are(raw: str, data: st.DataObject) -> None:
    decoded, file = TextFile(raw), decode_file(raw.encode())
    assert file == TextFile(raw.encode())
    start = data.draw(st.integers(0, len(decoded.text)))
    old = decoded.text[start : start + data.draw(st.integers(1, 5))] or "a"
    new = data.draw(st.text(st.sampled_from("ab\né\udc80"), max_size=4))
    edits: list[Edit] = [{"old": old, "new": new, "replace_all": data.draw(st.booleans())}]
    assert _edit(file, edits) == _edit(decoded, edits)


def _edit(file: TextFile, edits: list[Edit]) -> tuple[str, bytes, list[str]] | str:
    try:
        edited = apply_edits(file, edits).file
    except ToolFailed as error:
        return error.reason
    return edited.text, edited.encode(), diff_texts(file.content, edited.content)


def test_overlapping_occurrences_are_replaced_from_the_left() -> None:
    edited = apply_edits(TextFile("x\r\naaa\r\naa"), [{"old": "aa", "new": "b", "replace_all": True}])
    assert edited.file.raw == "x\r\nba\r\nb"


@given(FILES, st.lists(WORDS, max_size=12))
@settings(max_examples=300, deadline=None)
def test_a_rewritten_file_keeps_ends_where_lines_stay(lines: list[tuple[str, str]], words: list[str]) -> None:
    file = TextFile("".join(word + line_end for word, line_end in lines))
    text = "".join(f"{word}\n" for word in words)
    assert file.rewrite(text).text == text
    assert file.rewrite(file.text).raw == file.raw
    if lines:
        assert file.rewrite(f"{file.text}more\n").raw.startswith(file.raw)
        assert file.rewrite(f"more\n{file.text}").raw.endswith(file.raw)


TEXTS = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=15).map("\n".join)


@given(TEXTS, TEXTS)
@settings(max_examples=500, deadline=None)
def test_a_diff_leads_from_one_text_to_the_other(before: str, after: str) -> None:
    diff = diff_texts(before, after)
    assert apply_diff(before, diff) == after
    assert diff_texts(before.encode(), after.encode()) == diff_texts(before.encode(), after) == diff


def apply_diff(before: str, diff: list[str]) -> str:
    lines = re.findall(r"[^\n]*\n|[^\n]+", before)
    made: list[str] = []
    at = 0
    for line in diff:
        header = re.match(r"@@ -(\d+)(?:,(\d+))? ", line)
        if header is not None:
            start = int(header[1]) - (header[2] != "0")
            made += lines[at:start]
            at = start
            continue
        text = line[1:].replace("\n\\ No newline at end of file", "") if "\n\\" in line else line[1:] + "\n"
        if line[0] != "+":
            assert lines[at] == text
            at += 1
        if line[0] != "-":
            made.append(text)
    return "".join(made + lines[at:])


def test_changes_that_are_far_apart_are_shown_each_for_itself() -> None:
    lines = [f"line {number}\n" for number in range(60_000)]
    changed = [*lines]
    changed[10] = "first\n"
    changed[50_000] = "second\n"
    assert len(diff_texts("".join(lines), "".join(changed))) == 18


@given(st.integers(0, 3_000), st.integers(0, 40), st.sampled_from(["", "x\n", "line 7\n" * 30, "no end"]))
@settings(max_examples=50, deadline=None)
def test_replaced_bytes_are_those_of_a_copy(line: int, size: int, new: str) -> None:
    base = "".join(f"line {number // 3}\n" for number in range(9_000)).encode()
    start = min(line * 30, len(base))
    spliced = SplicedBytes(base, start, min(start + size * 11, len(base)), new.encode())
    copied = bytes(spliced)
    assert copied == base[: spliced.start] + spliced.new + base[spliced.end :] == b"".join(spliced.parts)
    assert len(spliced) == len(copied)
    assert hash_content(spliced) == hash_content(copied)
    assert diff_texts(base, spliced) == diff_texts(base, copied)
