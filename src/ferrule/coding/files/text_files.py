"""Files as text: their encoding is detected and kept, and so are their line ends, each line's own."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from ferrule._util.line_diff import count_common_end, count_common_start, find_changes
from ferrule._util.pluralize import pluralize
from ferrule._util.spliced_bytes import EncodedText, SplicedBytes, decode_text
from ferrule.coding.files.encodings import (
    ESCAPED,
    decode_with,
    find_declared,
    guess_encoding,
    normalize_encoding,
)
from ferrule.errors import ToolFailed

__all__ = ["TextFile", "decode_file", "make_empty", "show_bad_bytes", "split_lines"]

_BOMS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE: Final = 65_536
_CONTROLS: Final = bytes({*range(32)} - {*b"\t\n\x0b\x0c\r\x1b"})
_LINE_END: Final = re.compile(r"\r\n|\n")
_HIGH: Final = bytes(range(128, 256))
_NOT_ASCII: Final = re.compile("[^\x00-\x7f]+")
_SHOWN: Final = re.compile(r"\\x([89a-f][0-9a-f])")


@dataclass(frozen=True)
class TextFile:
    """A file's text, with everything that is needed to write it back: a change to `content` changes nothing else."""

    content: EncodedText
    """The text with its own line ends, or its bytes if it is in ASCII: to decode and copy a large one takes long."""
    encoding: str = "utf-8"
    bom: bytes = b""
    bad_bytes: int = 0
    """Bytes that aren't valid in the encoding; they are kept, as surrogates."""
    reason: str = ""
    """Why this encoding: it is declared or assumed; empty for UTF-8 and where a byte order mark says it."""

    @cached_property
    def raw(self) -> str:
        """The text with its own line ends."""
        return decode_text(self.content)

    @cached_property
    def _bytes(self) -> bytes | None:
        """Its bytes, if it is held in bytes."""
        return None if isinstance(self.content, str) else bytes(self.content)

    @cached_property
    def text(self) -> str:
        """The text with `\\n` at the end of each line."""
        if not self._has_returns:
            return self.raw
        return self.raw.replace("\r", "\n") if self._is_classic else self.raw.replace("\r\n", "\n")

    @property
    def description(self) -> str:
        """What is unusual about it: encoding and line ends; empty for UTF-8 with `\\n`."""
        notes = []
        if self.reason:
            notes.append(f"encoding {self.encoding}, {self.reason}")
        elif self.encoding != "utf-8" or self.bom:
            notes.append(self.encoding + (" with a byte order mark" if self.bom else ""))
        if self.bad_bytes:
            are = "is" if self.bad_bytes == 1 else "are"
            notes.append(f"{pluralize(self.bad_bytes, 'invalid byte')}, shown as \\x.., {are} kept")
        if self.line_end != "\n":
            notes.append({"\r\n": "CRLF line ends", "\r": "CR line ends"}[self.line_end] + " are kept")
        elif self._has_returns and "\r\n" in self.raw:
            notes.append("line ends are mixed, and kept")
        return "; ".join(notes)

    @cached_property
    def line_end(self) -> str:
        """What ends most lines."""
        if not self._has_returns:
            return "\n"
        if self._is_classic:
            return "\r"
        windows = self.raw.count("\r\n")
        return "\r\n" if windows and windows * 2 >= self.raw.count("\n") else "\n"

    @cached_property
    def _has_returns(self) -> bool:
        return "\r" in self.raw if self._bytes is None else b"\r" in self._bytes

    @cached_property
    def _is_classic(self) -> bool:
        return self._has_returns and "\n" not in self.raw

    @cached_property
    def _windows_ends(self) -> list[int]:
        """The offsets in `text` of line ends that are two characters in `raw`."""
        return [found.start() - number for number, found in enumerate(re.finditer("\r\n", self.raw))]

    def find(self, wanted: str, start: int = 0) -> int:
        """The offset in `text` at which a text occurs first, from `start` on; -1 if it doesn't."""
        if self._bytes is None or self._has_returns:
            return self.text.find(wanted, start)
        # Half of a surrogate pair has no bytes, but no place in the file either.
        return self._bytes.find(wanted.encode("utf-8", "surrogatepass"), start)

    def replace(self, start: int, end: int, new: str) -> TextFile:
        """This file with `text[start:end]` replaced; new lines get the ends of those they replace, or of most.

        Raises `ToolFailed` for a character that its encoding doesn't have.
        """
        raw_start, raw_end = self._find_raw(start), self._find_raw(end)
        old = self.raw[raw_start:raw_end] if self._bytes is None else self._bytes[raw_start:raw_end].decode()
        self._check_new(new, old)
        if not self._has_returns:
            return self._splice(raw_start, raw_end, new)
        written = self._give_line_ends(old, new.replace("\r\n", "\n"), raw_start)
        return self._splice(raw_start, raw_end, written)

    def _give_line_ends(self, old: str, new: str, offset: int) -> str:
        """New text for `old` at an offset of `raw`: lines that stay keep their ends, others get those they replace."""
        if self._is_classic:
            return new.replace("\n", "\r")
        if self.raw.count("\r\n") == self.raw.count("\n"):
            return new.replace("\n", "\r\n")
        lines, old_ends = new.split("\n"), [*_LINE_END.findall(old), ""]
        filler = old_ends[-2] if len(old_ends) > 1 else self._find_end_near(offset)
        ends: list[str] = []
        kept = 0
        for a, b, c, d in find_changes(_LINE_END.split(old), lines):
            ends += old_ends[kept : kept + c - len(ends)]
            # Lines that replace none have the end of the one before.
            ends += old_ends[a:b][: d - c]
            ends += [ends[-1] if ends else filler] * (d - len(ends))
            kept = b
        ends += old_ends[kept:]
        ends = [*(each or filler for each in ends[: len(lines) - 1]), ""]
        return "".join(line + line_end for line, line_end in zip(lines, ends, strict=True))

    def replace_all(self, old: str, new: str) -> TextFile:
        """This file with every `old` of its text replaced; line ends as in `replace`."""
        if not self._has_returns:
            self._check_new(new, old)
            return replace(self, content=self.raw.replace(old, new))
        changed = self
        for start in reversed(list(_find_all(self.text, old))):
            changed = changed.replace(start, start + len(old), new)
        return changed

    def rewrite(self, text: str) -> TextFile:
        """This file with another text: its line ends are kept where lines stay, and the newline at its end.

        Lines that are as they are shown keep their bad bytes. Raises as `replace` does.
        """
        if self.bad_bytes:
            text = self._restore_bad_lines(text)
        if "\r" in text:
            self._check_new(text, self.raw)
            return replace(self, content=text)  # whoever writes them means them
        old = self.text
        if old.endswith("\n") and text and not text.endswith("\n"):
            text += "\n"
        start, end = _find_common(old, text)
        return self.replace(start, len(old) - end, text[start : len(text) - end])

    def read_shown(self, text: str) -> str:
        """A text in which bad bytes are written as `\\x..`, as they are shown, with the bytes in their place."""
        return _SHOWN.sub(lambda found: chr(0xDC00 + int(found[1], 16)), text)

    def encode(self) -> bytes:
        """The bytes of the file: of what wasn't replaced, the same as before."""
        if self._bytes is not None:
            return self.bom + self._bytes
        return self.bom + self.raw.encode(self.encoding, "surrogateescape" if self.bad_bytes else "strict")

    def _check_new(self, new: str, old: str) -> None:
        """Raise `ToolFailed` if `new`, in place of `old`, can't be encoded; bad bytes of `old` may stay."""
        if new.isascii():
            return
        kept = set(ESCAPED.findall(old)) if self.bad_bytes else None
        text = "".join(each for each in new if each not in kept) if kept else new
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError as error:
            character = text[error.start]
            if "\ud800" <= character <= "\udfff":
                raise ToolFailed(
                    f"the text holds {character!a}, half of a surrogate pair, which no file can hold"
                ) from error
            raise ToolFailed(
                f"{character!r} (U+{ord(character):04X}) can't be written in {self.encoding}, which the file is in: "
                "write it in ASCII, such as by an escape of the language, or convert the file to UTF-8 first (iconv)"
            ) from error

    def _restore_bad_lines(self, text: str) -> str:
        """A new text with the bytes of each line that is just as a line with bad bytes is shown."""
        lines = set(self.text.split("\n"))
        bad = {show_bad_bytes(line): line for line in lines if ESCAPED.search(line)}
        for shown in lines.intersection(bad):
            del bad[shown]
        return "\n".join(bad.get(line, line) for line in text.split("\n"))

    def _splice(self, start: int, end: int, new: str) -> TextFile:
        """This file with `raw[start:end]` replaced."""
        if self._bytes is None or not new.isascii():
            return replace(self, content="".join((self.raw[:start], new, self.raw[end:])))
        spliced = SplicedBytes(self._bytes, start, end, new.encode())
        # Of several changes only the first is one to the file's own bytes.
        return replace(self, content=spliced if isinstance(self.content, bytes) else bytes(spliced))

    def _find_raw(self, offset: int) -> int:
        """The offset in `raw` of an offset in `text`."""
        if not self._has_returns or self._is_classic:
            return offset
        return offset + bisect_left(self._windows_ends, offset)

    def _find_end_near(self, offset: int) -> str:
        """The end of the line at an offset of `raw`, or of the one before."""
        found = self.raw.find("\n", offset)
        if found < 0:
            found = self.raw.rfind("\n", 0, offset)
        return "\r\n" if found > 0 and self.raw[found - 1] == "\r" else "\n"


def decode_file(data: bytes, charset: str | None = None) -> TextFile | None:
    """The text of a file; None if it is binary. `charset` is what an `.editorconfig` says of it."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            try:
                return TextFile(data[len(bom) :].decode(encoding), encoding, bom)
            except UnicodeDecodeError:
                return None if encoding != "utf-8" else _decode_other(data, charset)
    if b"\0" in data:
        return _decode_wide(data)
    sample = data[:_SAMPLE]
    if len(sample.translate(None, _CONTROLS)) * 20 < len(sample) * 19:
        return None
    if data.isascii():
        # What is added to it has to be in the encoding that it declares.
        encoding, reason = _find_declared(data, charset)
        return TextFile(data, encoding, reason=reason)
    try:
        return TextFile(data.decode())
    except UnicodeDecodeError:
        return _decode_other(data, charset)


def make_empty(content: str, charset: str | None = None) -> TextFile:
    """An empty file in the encoding for a new one with that content: what it declares, else what `charset` says."""
    for bom, encoding in _BOMS:
        if charset == ("utf-8-bom" if encoding == "utf-8" else encoding.replace("-le", "le").replace("-be", "be")):
            return TextFile("", encoding, bom)
    encoding, reason = _find_declared(content[:_SAMPLE].encode("utf-8", "replace"), charset)
    return TextFile("", encoding, reason=reason)


def show_bad_bytes(text: str) -> str:
    """A text in which bytes that couldn't be decoded are written as `\\x..`."""
    if text.isascii():
        return text
    try:
        text.encode()  # much faster than looking for them
    except UnicodeEncodeError:
        return ESCAPED.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", text)
    return text


def split_lines(text: str) -> list[str]:
    """The lines of a text with `\\n` line ends; a newline at the end begins no further line."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _find_all(text: str, wanted: str) -> Iterator[int]:
    """The offsets at which a text occurs, from the left and without overlapping, as `str.replace` finds them."""
    found = text.find(wanted)
    while found >= 0:
        yield found
        found = text.find(wanted, found + len(wanted))


def _decode_wide(data: bytes) -> TextFile | None:
    """UTF-16 without a byte order mark, which is mostly ASCII if it is text; None for anything else."""
    sample = data[:_SAMPLE]
    if len(data) % 2:
        return None
    for encoding, zeros, others in (("utf-16-le", sample[1::2], sample[::2]), ("utf-16-be", sample[::2], sample[1::2])):
        if zeros.count(0) * 10 >= len(zeros) * 7 and others.count(0) * 50 <= len(others):
            try:
                return TextFile(data.decode(encoding), encoding)
            except UnicodeDecodeError:
                return None
    return None


def _decode_other(data: bytes, charset: str | None) -> TextFile:
    """Text that isn't valid UTF-8: as it is declared, UTF-8 with some bad bytes, or in an older encoding."""
    encoding, reason = _find_declared(data, charset)
    if encoding != "utf-8":
        declared = _make_text(data, encoding, reason)
        if declared.bad_bytes * 10 <= len(data) - len(data.translate(None, _HIGH)):
            return declared
    mixed = _make_text(data, "utf-8", "")
    if sum(map(len, _NOT_ASCII.findall(mixed.raw))) > 2 * mixed.bad_bytes:
        return mixed
    return _make_text(data, guess_encoding(data), "assumed since it isn't UTF-8")


def _make_text(data: bytes, encoding: str, reason: str) -> TextFile:
    raw = decode_with(data, encoding)
    return TextFile(raw, encoding, bad_bytes=len(ESCAPED.findall(raw)), reason=reason)


def _find_declared(data: bytes, charset: str | None) -> tuple[str, str]:
    """The encoding that is declared, and where; "utf-8" if none is."""
    if (encoding := find_declared(data)) is not None:
        return encoding, "as it declares" if encoding != "utf-8" else ""
    encoding = normalize_encoding(charset) if charset is not None else None
    return (encoding, "as .editorconfig says") if encoding not in (None, "utf-8") else ("utf-8", "")


def _find_common(old: str, new: str) -> tuple[int, int]:
    """The lengths of the whole lines at the start and at the end that two texts share."""
    start = old.rfind("\n", 0, count_common_start(old, new)) + 1
    end = min(count_common_end(old, new), len(old) - start, len(new) - start)
    at = old.find("\n", len(old) - end) + 1 if end else 0
    return start, len(old) - at if at else 0
