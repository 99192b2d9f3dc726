"""Encodings of files: few are assumed, what is declared counts, and no byte outside of an edit ever changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from called_tools import call_tool
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ferrule.coding.files.edits import apply_edits
from ferrule.coding.files.text_files import decode_file
from ferrule.coding.files.tools import make_file_tools
from ferrule.coding.workspace import Workspace
from ferrule.errors import ToolFailed
from tables import each_case

RUSSIAN = "# Загружает настройки из файла и проверяет их\n"
JAPANESE = "# 設定ファイルを読み込んで、エラーがあれば表示する\n"
CHINESE = "# 读取配置文件，如果有错误就显示出来，然后继续执行\n"
TRADITIONAL = "# 讀取設定檔案，如果有錯誤就顯示出來，然後繼續執行\n"
KOREAN = "# 설정 파일을 읽고 오류가 있으면 화면에 표시한다\n"
WESTERN = (
    "café\n", "# naïve\n", "Größe = 1  # Maß der Tür\n", "// año, señor, niño, ¿qué?\n", "På vår gård är det kallt\n",
    "printf(\"Ça marche déjà: %d\\n\", 1); // élève, forêt\n", "© 2024 Müller & Söhne GmbH, 30 °C, ±5 µm, £100\n",
    "“It’s the user’s own – don’t”, he said… it isn’t, we’re, they’ll, I’d, you’ve\n", "ÄÖÜ äöü ß ÅÄÖ åäö\n",
    "[àâäéèêëîïôöùûüÿç]+\n", "São João não é você\n", "Í dag er fínn dagur, þú og ég, æfing\n", "price: 5 €\n",
    "Ärger Übung Öl Ähre Ölung Äpfel Österreich Übel\n",
)  # fmt: skip
NAMES = (
    "cp1252", "latin-1", "iso8859-15", "cp1250", "cp1251", "koi8-r", "cp437", "mac-roman", "cp932", "shift_jis",
    "euc-jp", "gb18030", "gbk", "cp950", "big5", "cp949", "euc-kr", "utf-8", "utf-16-le", "johab", "iso2022_jp", "hz",
    "big5hkscs", "shift_jisx0213", "euc_jis_2004", "utf-7",
)  # fmt: skip
TEXTS = st.text(st.sampled_from("abc \n\té日本語の確認、カナ한국어 Привет“’€ß\u0301\u30abか゚"), max_size=40)


@each_case("text", WESTERN)
def test_western_texts_are_cp1252(text: str) -> None:
    file = decode_file(text.encode("cp1252"))
    assert file is not None
    assert (file.raw, file.encoding) == (text, "cp1252")


@given(st.lists(st.text("abcdeilnorst", min_size=1, max_size=4), min_size=1, max_size=20), st.data())
@settings(max_examples=500, deadline=None)
def test_letters_among_ascii_never_speak_for_another_encoding(words: list[str], data: st.DataObject) -> None:
    joined = words[0] + "".join(data.draw(st.sampled_from("éèêàâçñüöäßåæøíóáúÉÜÖÄÅØ’“”–")) + word for word in words)
    file = decode_file(joined.encode("cp1252"))
    assert file is not None
    assert file.encoding == "cp1252"


@each_case(("text", "encoding", "found"), [
    (RUSSIAN, "cp1251", "cp1251"), (RUSSIAN, "koi8-r", "koi8-r"), (JAPANESE, "shift_jis", "cp932"),
    (JAPANESE, "euc-jp", "euc-jp"), (CHINESE, "gbk", "gb18030"), (CHINESE, "gb18030", "gb18030"),
    (TRADITIONAL, "big5", "cp950"), (KOREAN, "euc-kr", "cp949"),
])  # fmt: skip
@each_case("around", ["", "def f(x):\n    return x\n" * 40])
def test_clear_texts_of_other_scripts_are_recognised(text: str, encoding: str, found: str, around: str) -> None:
    file = decode_file((around + text + around).encode(encoding))
    assert file is not None
    assert (file.encoding, file.raw) == (found, around + text + around)


@each_case(("data", "encoding"), [
    ("# -*- coding: iso8859-15 -*-\nprice = '5 €'\n".encode("iso8859-15"), "iso8859-15"),
    (b"#!/usr/bin/python\n# coding=latin-1\nascii = 1\n", "iso8859-1"),
    ("/* -*- coding: cp1250 -*- */ žluť\n".encode("cp1250"), "cp1250"),
    ("<?xml version='1.0' encoding='ISO-8859-2'?>\n<a>žluť</a>\n".encode("iso8859-2"), "iso8859-2"),
    ("<html><head><meta charset=\"iso-8859-1\"></head>5 €</html>\n".encode("cp1252"), "cp1252"),
    ("<meta http-equiv=\"Content-Type\" content=\"text/html; charset=Shift_JIS\">日本\n".encode("cp932"), "cp932"),
    ("@charset \"windows-1251\";\n/* цвет */\n".encode("cp1251"), "cp1251"),
    ("# coding: utf-8\n# café\n".encode("cp1252"), "cp1252"),
    ("# coding: no-such-thing\n# café\n".encode("cp1252"), "cp1252"),
    ("# coding: iso2022_jp\n# café\n".encode("cp1252"), "cp1252"),
    ("# coding: latin-1\n# café\n".encode(), "utf-8"),
])  # fmt: skip
def test_what_a_file_declares_counts(data: bytes, encoding: str) -> None:
    file = decode_file(data)
    assert file is not None
    assert file.encoding == encoding
    assert file.encode() == data


@given(TEXTS, st.sampled_from(NAMES), st.binary(max_size=6), TEXTS, st.sampled_from(["", "# coding: {}\n"]), st.data())
@example("Ê̄", "big5hkscs", b"", "x", "# coding: {}\n", None)
@settings(max_examples=1500, deadline=None)
def test_no_byte_outside_of_an_edit_changes(
    text: str, name: str, junk: bytes, new: str, cookie: str, data: st.DataObject | None
) -> None:
    whole = (cookie.format(name) + text).encode(name, "ignore")
    at = data.draw(st.integers(0, len(whole))) if data else 0
    whole = whole[:at] + junk + whole[at:]
    file = decode_file(whole)
    if file is None or "\r" in file.raw:  # whose line ends new lines get; see test_text_files
        return
    assert file.encode() == whole
    start = data.draw(st.integers(0, len(file.raw))) if data else 0
    end = data.draw(st.integers(start, len(file.raw))) if data else 1
    before = file.bom + file.raw[:start].encode(file.encoding, "surrogateescape")
    after = file.raw[end:].encode(file.encoding, "surrogateescape")
    assert whole.startswith(before)
    assert whole.endswith(after)
    try:
        changed = file.replace(start, end, new)
    except ToolFailed:
        return
    assert changed.encode() == before + new.encode(file.encoding) + after


@given(st.binary(max_size=60), st.integers(0, 60), st.integers(0, 4), st.sampled_from(["x", "", "a\nb"]))
@settings(max_examples=800, deadline=None)
def test_edits_of_any_bytes_keep_the_others(data: bytes, start: int, length: int, new: str) -> None:
    file = decode_file(b"some text\n" * 20 + data)
    if file is None or "\r" in file.raw:
        return
    start += 200
    old = file.raw[start : start + length]
    if not old or old == new or file.raw.count(old) > 1:
        return
    edited = apply_edits(file, [{"old": old, "new": new}]).file.encode()
    before = file.bom + file.raw[:start].encode(file.encoding, "surrogateescape")
    after = file.raw[start + length :].encode(file.encoding, "surrogateescape")
    assert edited == before + new.encode(file.encoding) + after


def test_bytes_for_a_character_in_an_unusual_way_stay() -> None:
    data = "かなカナ日本".encode("cp932") + b"\xed\x40\n" + "かな".encode("cp932")
    file = decode_file(data)  # ED40 is another code of the character FA5C
    assert file is not None
    assert file.encoding == "cp932"
    assert apply_edits(file, [{"old": "カナ", "new": "カタカナ"}]).file.encode() == data.replace(
        "カナ".encode("cp932"), "カタカナ".encode("cp932")
    )


async def test_bad_bytes_are_quoted_as_they_are_shown(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("ñandú está aquí\n".encode() + b"one \xe9 two\nthree\n")
    tools = make_file_tools(Workspace(tmp_path))
    shown = await call_tool(tools, "read_file", path="a.txt")
    assert "one \\xe9 two" in shown.text
    assert "[1 invalid byte, shown as \\x.., is kept]" in shown.text
    edits = [{"old": "one \\xe9 two", "new": "1 \\xe9 2"}]
    result = await call_tool(tools, "edit_file", path="a.txt", edits=edits)
    assert "was taken for the invalid bytes" in result.text
    assert (tmp_path / "a.txt").read_bytes().endswith(b"1 \xe9 2\nthree\n")
    content = "ñandú está aquí\n1 \\xe9 2\n3\n"
    await call_tool(tools, "write_file", path="a.txt", content=content)
    assert (tmp_path / "a.txt").read_bytes().endswith(b"1 \xe9 2\n3\n")


async def test_editorconfig_gives_the_encoding_of_new_and_ascii_files(tmp_path: Path) -> None:
    (tmp_path / ".editorconfig").write_text(
        "root = true\n[*]\ncharset = utf-8\n[*.properties]\ncharset = latin1 ; of Java\n"
        "[*.{bat,cmd}]\ncharset=utf-8-bom\n[win/**.rc]\ncharset = utf-16le\n[*.none]\ncharset = no-such-thing\n"
    )
    (tmp_path / "a.properties").write_text("name = x\n")
    tools = make_file_tools(Workspace(tmp_path))
    shown = await call_tool(tools, "read_file", path="a.properties")
    assert "[encoding iso8859-1, as .editorconfig says]" in shown.text
    await call_tool(tools, "edit_file", path="a.properties", edits=[{"old": "x", "new": "é"}])
    assert (tmp_path / "a.properties").read_bytes() == b"name = \xe9\n"
    refused = await call_tool(tools, "edit_file", path="a.properties", edits=[{"old": "é", "new": "€"}])
    assert "'€' (U+20AC) can't be written in iso8859-1" in refused.text
    for path, written in (
        ("b.properties", b"\xe9\n"), ("c.bat", b"\xef\xbb\xbf\xc3\xa9\n"), ("win/d.rc", b"\xff\xfe\xe9\0\n\0"),
        ("e.txt", b"\xc3\xa9\n"), ("f.none", b"\xc3\xa9\n"),
    ):  # fmt: skip
        await call_tool(tools, "write_file", path=path, content="é\n")
        assert (tmp_path / path).read_bytes() == written


async def test_a_new_file_is_written_as_it_declares(tmp_path: Path) -> None:
    tools = make_file_tools(Workspace(tmp_path))
    result = await call_tool(tools, "write_file", path="a.py", content="# coding: latin-1\nname = 'é'\n")
    assert "[encoding iso8859-1, as it declares]" in result.text
    assert (tmp_path / "a.py").read_bytes() == b"# coding: latin-1\nname = '\xe9'\n"


@pytest.mark.parametrize("target", ["/dev/zero", "../outside", "missing"])
async def test_an_editorconfig_that_leads_elsewhere_is_none(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "proj"
    folder.mkdir()
    (tmp_path / "outside").write_text("[*]\ncharset = latin1\n")
    (folder / ".editorconfig").symlink_to(target)
    tools = make_file_tools(Workspace(folder))
    await call_tool(tools, "write_file", path="a.txt", content="é\n")
    assert (folder / "a.txt").read_bytes() == b"\xc3\xa9\n"


@pytest.mark.parametrize(
    "text",
    [
        f"a{' ' * 1_000_000}b\n",
        f"[*]\na = b{' ' * 1_000_000}c\n",
        "".join(f"[{{{','.join(f'{at}{one}*?[a-z]' for one in range(60))}}}]\n" for at in range(2_000)),
    ],
)
async def test_an_editorconfig_takes_no_time(text: str, tmp_path: Path) -> None:
    (tmp_path / ".editorconfig").write_text(text)
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n")
    shown = await call_tool(make_file_tools(Workspace(tmp_path)), "read_file", path="a.txt")
    assert shown.text.startswith("1\tcafé")
