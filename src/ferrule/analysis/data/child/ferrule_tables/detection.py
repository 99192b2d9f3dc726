"""Determines what a file contains: its kind by its content, its compression, its encoding. Runs in the sandbox."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import json
import lzma
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import IO, Any

CHUNK = 1 << 20
SAMPLE = 1 << 18
MAGIC = (
    (b"PAR1", "parquet"),
    (b"SQLite format 3\0", "sqlite"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file: save it as .xlsx"),
    (b"%PDF", "a PDF document: extract its tables as CSV"),
    (b"\x89PNG", "a picture: analyses read tables"),
    (b"\xff\xd8\xff", "a picture: analyses read tables"),
    (b"GIF8", "a picture: analyses read tables"),
    (b"ARROW1", "an Arrow file: save it as Parquet"),
    (b"ORC", "an ORC file: save it as Parquet"),
    (b"Obj\x01", "an Avro file: save it as Parquet"),
    (b"\x89HDF", "an HDF5 file: save its tables as Parquet"),
    (b"\x7fELF", "a program"),
    (b"7z\xbc\xaf", "a 7z archive: unpack it"),
    (b"Rar!", "a RAR archive: unpack it"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it"),
)
COMPRESSIONS: dict[bytes, str] = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz"}
OPENERS: dict[str, Callable[..., Any]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open, "": open}
KIND_OF_SUFFIX = {
    **dict.fromkeys(("csv", "tsv", "tab", "psv"), "csv"),
    **dict.fromkeys(("json", "geojson"), "json"),
    **dict.fromkeys(("jsonl", "ndjson"), "jsonl"),
    **dict.fromkeys(("parquet", "pq"), "parquet"),
    **dict.fromkeys(("xlsx", "xlsm"), "excel"),
    **dict.fromkeys(("db", "sqlite", "sqlite3"), "sqlite"),
}
TITLES = {
    "csv": "CSV",
    "json": "JSON",
    "jsonl": "JSON lines",
    "parquet": "Parquet",
    "excel": "an Excel workbook",
    "sqlite": "an SQLite database",
}
SUFFIXES = {"json": "json", "jsonl": "jsonl", "parquet": "parquet", "excel": "xlsx", "sqlite": "sqlite", "csv": "csv"}
WESTERN = set(
    b"\x80\x85\x91\x92\x93\x94\x95\x96\x97\xa0\xa3\xa7\xa9\xab\xae\xb0\xb1\xb2\xb3\xb4\xb5\xb7\xbb\xbc\xbd\xbe"
)
WESTERN |= set("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿºªŒœŠšŽž¿¡".encode("cp1252"))


class Unreadable(Exception):  # noqa: N818 - it says what the file is
    """The file can't be read; the message ends the sentence that begins with its name."""


def inspect_file(path: str, name: str) -> dict[str, Any]:
    """Determine kind, compression and encoding. Raises `Unreadable`."""
    with open(path, "rb") as file:  # noqa: PTH123 - in the sandbox, paths are names in its folder
        head = file.read(16)
    compression = next((found for magic, found in COMPRESSIONS.items() if head.startswith(magic)), "")
    suffixes = [part.lower() for part in name.split(".")[1:]]
    if compression and suffixes and suffixes[-1] in {"gz", "gzip", "bz2", "xz"}:
        suffixes.pop()
    expected = KIND_OF_SUFFIX.get(suffixes[-1] if suffixes else "")
    notes = [f"unpacked with {compression}"] if compression else []
    kind = _find_binary_kind(path, head) if not compression else None
    encoding = None
    if kind is None:
        encoding, note = find_encoding(path, compression)
        notes += note
        kind = _find_text_kind(path, compression, encoding, expected)
    if expected is not None and kind != expected and {kind, expected} != {"json", "jsonl"}:
        advice = f"rename it, as in {name.partition('.')[0]}.{SUFFIXES[kind]}"
        raise Unreadable(f"is named as {TITLES[expected]}, but contains {TITLES[kind]}: {advice}")
    return {"kind": kind, "compression": compression, "encoding": encoding, "notes": notes}


def _find_binary_kind(path: str, head: bytes) -> str | None:
    for magic, kind in MAGIC:
        if head.startswith(magic):
            if kind in TITLES:
                return kind
            raise Unreadable(f"is {kind}")
    if not head.startswith(b"PK"):
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError):
        raise Unreadable("is a damaged zip archive or workbook: save it again") from None
    if "xl/workbook.xml" in names:
        return "excel"
    if "xl/workbook.bin" in names or "content.xml" in names:
        raise Unreadable("is a spreadsheet of another format: save it as .xlsx or CSV")
    raise Unreadable("is a zip archive: unpack it, and name the files in it")


def open_source(path: str, compression: str) -> IO[bytes]:
    """Open a file that may be compressed."""
    opened: IO[bytes] = OPENERS[compression](path, "rb")
    return opened


def read_chunks(path: str, compression: str, size: int = CHUNK) -> Iterator[bytes]:
    """Yield the bytes of a file. Raises `Unreadable` if its compression is damaged."""
    try:
        with open_source(path, compression) as file:
            while chunk := file.read(size):
                yield chunk
    except (EOFError, OSError, lzma.LZMAError, ValueError) as error:
        if not compression:
            raise
        raise Unreadable(f"is damaged: unpacking it with {compression} fails ({error})") from None


def find_encoding(path: str, compression: str) -> tuple[str, list[str]]:
    """Return the encoding of a text file, and a note if it isn't UTF-8. Raises `Unreadable`."""
    head = next(read_chunks(path, compression), b"")
    if not head:
        raise Unreadable("is empty: it has no data to analyse")
    for mark, encoding in (
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if head.startswith(mark):
            return _check_decoding(path, compression, encoding)
    if head.startswith(codecs.BOM_UTF8):
        return _check_decoding(path, compression, "utf-8-sig")
    if b"\0" in head:
        even, odd = head[::2].count(0), head[1::2].count(0)
        for encoding, nulls, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
            if nulls > len(head) // 4 and others < len(head) // 100 + 1:
                return _check_decoding(path, compression, encoding)
    if _is_utf8(path, compression):
        return "utf-8", []
    return _find_old_encoding(path, compression)


def _is_utf8(path: str, compression: str) -> bool:
    decoder, read = codecs.getincrementaldecoder("utf-8")(), 0
    try:
        for chunk in read_chunks(path, compression):
            if b"\0" in chunk:
                place = read + chunk.index(b"\0")
                raise Unreadable(f"has a NUL byte at {place:,}: it is binary or damaged, so export it again as text")
            decoder.decode(chunk)
            read += len(chunk)
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


def _check_decoding(path: str, compression: str, encoding: str) -> tuple[str, list[str]]:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for chunk in read_chunks(path, compression):
            if "\0" in decoder.decode(chunk):
                raise Unreadable("has NUL characters: it is binary or damaged, so export it again as text")
        decoder.decode(b"", True)
    except UnicodeError as error:
        raise Unreadable(f"begins as {encoding}, but isn't: {error.args[-1]}; export it again as UTF-8") from None
    return encoding, [] if encoding == "utf-8-sig" else [f"read as {encoding}"]


def _find_old_encoding(path: str, compression: str) -> tuple[str, list[str]]:
    """Choose among encodings of one file, or of single lines, that aren't UTF-8."""
    with_utf8, other, sample = 0, 0, []
    left = SAMPLE
    for line in _split_lines(path, compression):
        if b"\0" in line:
            raise Unreadable("has NUL bytes: it is binary or damaged, so export it again as text")
        if line.isascii():
            continue
        try:
            line.decode()
            with_utf8 += 1
        except UnicodeDecodeError:
            other += 1
            if left > 0:
                sample.append(line)
                left -= len(line)
    # Few lines of another encoding can pass as UTF-8 by chance, and then say the same in both.
    if with_utf8 and with_utf8 * 20 > other:
        return "mixed", [f"lines of two encodings: {with_utf8:,} as UTF-8 and {other:,} as cp1252"]
    data = b"\n".join(sample)
    if set(data) - set(range(128)) <= WESTERN:
        return "cp1252", ["read as cp1252, a guess"]
    import charset_normalizer

    best = charset_normalizer.from_bytes(data, cp_exclusion=["utf_8", "utf_7"]).best()
    if best is None:
        raise Unreadable("is text of no encoding that can be determined, or binary: export it again as UTF-8")
    return best.encoding, [f"read as {best.encoding}, a guess"]


def _split_lines(path: str, compression: str) -> Iterator[bytes]:
    rest = b""
    for chunk in read_chunks(path, compression):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        if len(rest) > 64 * CHUNK:
            raise Unreadable("has a line of more than 64 MB: it is binary or damaged")
    yield rest


def decode_chunks(path: str, compression: str, encoding: str) -> Iterator[bytes]:
    """Yield a text file's content as UTF-8."""
    if encoding == "mixed":
        for line in _split_lines(path, compression):
            try:
                line.decode()
                yield line + b"\n"
            except UnicodeDecodeError:
                yield line.decode("cp1252", "replace").encode() + b"\n"
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    for chunk in read_chunks(path, compression):
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", True).encode("utf-8", "replace")


def _find_text_kind(path: str, compression: str, encoding: str, expected: str | None) -> str:
    data = b""
    for chunk in decode_chunks(path, compression, encoding):
        data += chunk
        if len(data) >= SAMPLE:
            break
    text = data.decode("utf-8", "replace").lstrip("\ufeff")
    start = text.lstrip()
    if not start:
        raise Unreadable("has nothing but white space: it has no data to analyse")
    if re.match(r"<(!doctype\s+html|html|head|body)\b", start, re.IGNORECASE):
        raise Unreadable("is an HTML page, perhaps a login or an error page: download the data again")
    if start.startswith("<?xml"):
        raise Unreadable("is an XML document: convert it to CSV or JSON")
    is_json, is_lines = start[0] in "[{" and _looks_like_json(start), _is_json_line(start)
    if expected in {"json", "jsonl"} and not is_json:
        raise Unreadable(f"is named as {TITLES[expected]}, but doesn't begin as JSON does: {start[:40]!r}")
    if expected == "csv" and not is_json:
        return "csv"
    if not is_json:
        return "csv"
    return "jsonl" if is_lines and start[0] == "{" and "\n" in start.strip() else "json"


def _looks_like_json(text: str) -> bool:
    """Is it JSON as far as it was read?"""
    try:
        json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text) - 200 or "Unterminated" in error.msg
    except RecursionError:
        raise Unreadable("is JSON nested too deeply for a table") from None
    return True


def _is_json_line(text: str) -> bool:
    line = io.StringIO(text).readline()
    try:
        return isinstance(json.loads(line), dict)
    except (json.JSONDecodeError, RecursionError):
        return False
