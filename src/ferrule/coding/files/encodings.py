"""Finds the encoding of a file that isn't UTF-8: what is declared, else one that its bytes speak for, else cp1252.

Only encodings are used that write each character by itself, so that changing a part changes no other byte, and of these
few are guessed: a wrong guess of a rare one (a guess among all takes short texts in cp1252 for Hebrew or Korean) would
write what no program of the project reads.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

__all__ = ["ESCAPED", "decode_with", "find_declared", "guess_encoding", "normalize_encoding"]

ESCAPED: Final = re.compile("[\udc80-\udcff]")
"""A byte that couldn't be decoded, as Python's `surrogateescape` keeps it."""
_NEWER: Final = {
    "shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030", "big5": "cp950", "euc_kr": "cp949",
}  # fmt: skip
"""Encodings that are read as a larger one, which what is written under their names is in."""
_OF_SEVERAL_BYTES: Final = {"cp932", "euc_jp", "gb18030", "cp950", "cp949"}
_DECLARED_EARLY: Final = 2048
_IN_COMMENT: Final = re.compile(rb"(?i)^[ \t\f]*(?:#|//|--|;|/?\*|<!--).*?coding[:=][ \t]*([-_.a-z0-9]+)")
_IN_XML: Final = re.compile(rb"""^\s*<\?xml\b[^>]*?\bencoding\s*=\s*["']([-_.:A-Za-z0-9]+)""")
_IN_HTML: Final = re.compile(rb"""(?i)<meta\b[^>]*?\bcharset\s*=\s*["']?\s*([-_.:a-z0-9]+)""")
_IN_CSS: Final = re.compile(rb"""^@charset "([-_.:A-Za-z0-9]+)";""")
_SAMPLE: Final = 65_536
_FEWEST: Final = 5
"""Characters of several bytes that a guess needs."""
_FEWEST_CYRILLIC: Final = 10


def normalize_encoding(name: str) -> str | None:
    """Python's name of an encoding, or of the larger one that it is read as; None if it isn't known or can't be used.

    It can be used if ASCII is itself in it, and each character is written in one way whatever is around it.
    """
    try:
        found = codecs.lookup(name).name.replace("-", "_")
    except (LookupError, ValueError):
        return None
    found = _NEWER.get(found, found)
    if found != "utf_8" and found not in _OF_SEVERAL_BYTES and not _has_one_byte_each(found):
        return None
    return codecs.lookup(found).name.replace("_", "-")


@cache
def _has_one_byte_each(name: str) -> bool:
    every = bytes(range(256))
    try:
        text = every.decode(name, "surrogateescape")
        is_same = text.encode(name, "surrogateescape") == every
    except (LookupError, UnicodeError):
        return False
    # Those of ISO 2022 and HZ change their meaning within a text by ASCII characters.
    return is_same and len(text) == 256 and text[:128].encode() == every[:128] and not name.startswith("iso2022")


def find_declared(data: bytes) -> str | None:
    """The encoding that a file declares in its first lines: by PEP 263, as XML, HTML or CSS; None if by none."""
    start = data[:_DECLARED_EARLY]
    for line in start.split(b"\n", 2)[:2]:
        if found := _IN_COMMENT.match(line):
            return normalize_encoding(found[1].decode())
    if found := _IN_XML.match(start) or _IN_CSS.match(start):
        return normalize_encoding(found[1].decode())
    if found := _IN_HTML.search(start):
        name = normalize_encoding(found[1].decode())
        # Browsers read Latin-1 and ASCII as cp1252.
        return "cp1252" if name in ("iso8859-1", "ascii") else name
    return None


def decode_with(data: bytes, encoding: str) -> str:
    """Decode bytes so that encoding the text with `surrogateescape` gives the same ones.

    Bytes that aren't valid are kept as surrogates, and so are those that stand for a character in an unusual way.
    """
    text = data.decode(encoding, "surrogateescape")
    if _comes_back(text, encoding, data):
        return text
    # In no encoding used here is the byte of a line feed a part of another character.
    return "\n".join(_decode_line(line, encoding) for line in data.split(b"\n"))


def _decode_line(line: bytes, encoding: str) -> str:
    text = line.decode(encoding, "surrogateescape")
    return text if _comes_back(text, encoding, line) else "".join(_decode_characters(line, encoding))


def _decode_characters(line: bytes, encoding: str) -> Iterator[str]:
    at = 0
    while at < len(line):
        for size in (1, 2, 3, 4):
            character = line[at : at + size].decode(encoding, "ignore")
            if len(character) == 1 and _comes_back(character, encoding, line[at : at + size]):
                break
        else:
            size, character = 1, line[at : at + 1].decode("ascii", "surrogateescape")
        yield character
        at += size


def _comes_back(text: str, encoding: str, data: bytes) -> bool:
    try:
        return text.encode(encoding, "surrogateescape") == data
    except UnicodeError:
        return False


@dataclass(frozen=True, slots=True)
class _Script:
    """How a text in an encoding is recognised: by the share of its characters that are common ones."""

    encoding: str
    character: re.Pattern[bytes]
    common: re.Pattern[bytes]
    share: float


_SCRIPTS: Final = (
    # Japanese by its kana: kanji alone would also be what apostrophes of cp1252 and the next letter look like.
    _Script("cp932", re.compile(rb"(?s)[\x81-\x9f\xe0-\xfc].|[\xa1-\xdf]"),
            re.compile(rb"\x82[\x9f-\xf1]|\x83[\x40-\x96]"), 0.2),
    _Script("euc-jp", re.compile(rb"(?s)\x8f..|[\x8e\xa1-\xfe]."), re.compile(rb"[\xa4\xa5][\xa1-\xf6]"), 0.2),
    # The syllables of Korean come first in its table, as the common characters of Chinese do.
    _Script("cp949", re.compile(rb"(?s)[\x81-\xfe]."), re.compile(rb"[\xb0-\xc8][\xa1-\xfe]"), 0.95),
    _Script("gb18030", re.compile(rb"(?s)[\x81-\xfe]."), re.compile(rb"[\xa1\xa3\xb0-\xd7][\xa1-\xfe]"), 0.85),
    _Script("cp950", re.compile(rb"(?s)[\x81-\xfe]."), re.compile(rb"[\xa1-\xc6][\x40-\x7e\xa1-\xfe]"), 0.9),
)  # fmt: skip
_LETTERS: Final = re.compile(rb"[\xc0-\xff]+")
_CYRILLIC: Final = {name: "оеаинтОЕАИНТ".encode(name) for name in ("cp1251", "koi8-r")}
"""Nearly half of the letters of Russian, and a third in its neighbours."""


def guess_encoding(data: bytes) -> str:
    """The encoding that the bytes of a text speak for clearly, else cp1252. `data` isn't valid UTF-8."""
    first = next(re.finditer(rb"[\x80-\xff]", data)).start()
    begin = data.rfind(b"\n", 0, first) + 1
    sample = data[begin : begin + _SAMPLE]
    if begin + _SAMPLE < len(data):  # whole lines, so that no character is cut
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    cyrillic = _guess_cyrillic(sample)
    return cyrillic or next((each.encoding for each in _SCRIPTS if _speaks_for(sample, each)), "cp1252")


def _guess_cyrillic(sample: bytes) -> str | None:
    words = _LETTERS.findall(sample)
    letters = b"".join(words)
    # Letters of cp1252 that aren't ASCII stand alone among others; those of Cyrillic make whole words.
    if len(letters) < max(_FEWEST_CYRILLIC, 2.5 * len(words)):
        return None
    shares = {
        name: (len(letters) - len(letters.translate(None, common))) / len(letters) for name, common in _CYRILLIC.items()
    }
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] >= 0.35 else None


def _speaks_for(sample: bytes, script: _Script) -> bool:
    try:
        sample.decode(script.encoding)
    except UnicodeDecodeError:
        return False
    characters = script.character.findall(sample)
    common = [each for each in characters if script.common.fullmatch(each)]
    # A letter of cp1252 and the ASCII one after it may look like a character; in real text many have two high bytes.
    high = sum(each[-1] >= 0x80 for each in common)
    return len(common) >= _FEWEST and len(common) >= script.share * len(characters) and high >= 0.3 * len(common)
