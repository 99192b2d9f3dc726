"""Images that models are shown: whole ones with their size, damaged ones answered with what is wrong."""

from __future__ import annotations

import io
import re
import struct
import time
import zlib
from pathlib import Path

import pytest
from called_tools import call_tool
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Picture

from ferrule._util.file_size import describe_size
from ferrule.coding.attached_files import load_attachment
from ferrule.coding.files.images import check_image, find_shown_type
from ferrule.coding.files.tools import make_file_tools
from ferrule.coding.workspace import Workspace
from ferrule.conversation import Image
from ferrule.errors import SettingsError
from tables import each_case

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")


def draw(kind: str, mode: str = "RGB", size: tuple[int, int] = (37, 23), **settings: object) -> bytes:
    file = io.BytesIO()
    Picture.radial_gradient("L").resize(size).convert(mode).save(file, kind, **settings)  # type: ignore[arg-type]
    return file.getvalue()


def make_png(width: int, height: int, pixels: bytes) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@each_case(("kind", "mode", "options"), [
    ("PNG", "RGB", {}), ("PNG", "RGBA", {}), ("PNG", "L", {}), ("PNG", "1", {}), ("PNG", "P", {}), ("PNG", "I;16", {}),
    ("JPEG", "RGB", {}), ("JPEG", "L", {"progressive": True}), ("JPEG", "CMYK", {}), ("GIF", "P", {}),
    ("WEBP", "RGB", {}), ("WEBP", "RGB", {"lossless": True}), ("WEBP", "RGBA", {}),
    ("WEBP", "RGB", {"exif": b"Exif\0\0" + bytes(20)}),
])  # fmt: skip
def test_whole_images_have_a_size(kind: str, mode: str, options: dict[str, object]) -> None:
    data = draw(kind, mode, **options)
    media_type = find_shown_type(data)
    assert media_type == f"image/{kind.lower()}"
    assert check_image(data, media_type) == (37, 23)


@given(st.sampled_from(FORMATS), st.data())
@settings(max_examples=200, deadline=None)
def test_a_part_of_an_image_is_damaged(kind: str, data: st.DataObject) -> None:
    whole = draw(kind)
    cut = whole[: data.draw(st.integers(12, len(whole) - (13 if kind == "PNG" else 3)))]
    if kind == "GIF" and b"\x3b" in cut:
        return  # which could be its end
    with pytest.raises(ValueError, match="damaged"):
        check_image(cut, f"image/{kind.lower()}")


@given(st.sampled_from(FORMATS), st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_an_image_or_not(kind: str, junk: bytes) -> None:
    start = {"PNG": 8, "JPEG": 3, "GIF": 6, "WEBP": 16}[kind]
    try:
        width, height = check_image(draw(kind)[:start] + junk, f"image/{kind.lower()}")
    except ValueError:
        return
    assert width * height > 0


def test_a_changed_byte_of_a_png_is_found() -> None:
    data = bytearray(draw("PNG"))
    data[len(data) // 2] ^= 1
    with pytest.raises(ValueError, match="checksum"):
        check_image(bytes(data), "image/png")


@pytest.mark.parametrize(("width", "height", "pixels", "reason"), [
    (50_000, 50_000, b"", "50,000 × 50,000 pixels, more than 8,000 on a side"),
    (0, 10, b"", "its size is 0 × 10"),
    (100, 100, b"", "pixels are missing"),
    (100, 100, b"not compressed", "can't be decompressed"),
    (100, 100, zlib.compress(bytes(100)), "pixels are missing"),
])  # fmt: skip
def test_images_that_no_provider_takes(width: int, height: int, pixels: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_image(make_png(width, height, pixels or zlib.compress(b"")), "image/png")


@pytest.mark.slow
def test_a_bomb_is_not_kept_in_memory() -> None:
    packer = zlib.compressobj(9)
    pixels = b"".join(packer.compress(bytes(1 << 20)) for _ in range(2000)) + packer.flush()
    started = time.process_time()
    assert check_image(make_png(10, 10, pixels), "image/png") == (10, 10)
    assert time.process_time() - started < 30


@pytest.mark.parametrize(("size", "text"), [
    (0, "0 bytes"), (1, "1 byte"), (1023, "1,023 bytes"), (1024, "1.0 KB"), (1 << 20, "1.0 MB"),
    (5 << 40, "5,120.0 GB"),
])  # fmt: skip
def test_sizes_are_written_in_one_way(size: int, text: str) -> None:
    assert describe_size(size) == text


async def test_damaged_images_are_not_sent(tmp_path: Path) -> None:
    whole = draw("PNG")
    (tmp_path / "whole.png").write_bytes(whole)
    (tmp_path / "cut.png").write_bytes(whole[:-20])
    (tmp_path / "other.png").write_bytes(b"\0\1\2\3" * 100)
    workspace = Workspace(tmp_path)
    tools = make_file_tools(workspace)
    shown = await call_tool(tools, "read_file", path="whole.png")
    assert shown.text == f"whole.png: image/png, 37 × 23 pixels, {describe_size(len(whole))}"
    assert shown.content[1] == Image(whole, "image/png")
    cut = await call_tool(tools, "read_file", path="cut.png")
    assert cut.is_error
    assert "cut.png begins as image/png, but can't be shown: it is damaged: it ends too early" in cut.text
    other = await call_tool(tools, "read_file", path="other.png")
    assert "other.png is named like a PNG image, but doesn't begin like an image" in other.text
    assert load_attachment("whole.png", workspace) == Image(whole, "image/png")
    with pytest.raises(SettingsError, match=r"@cut\.png begins as image/png, but can't be shown"):
        load_attachment("cut.png", workspace)


async def test_images_that_are_too_large_are_not_sent(tmp_path: Path) -> None:
    (tmp_path / "big.png").write_bytes(draw("PNG") + bytes(6_000_000))
    workspace = Workspace(tmp_path)
    problem = r"big\.png is an image of 5\.7 MB, more than the 5\.0 MB that can be shown: make it smaller first"
    shown = await call_tool(make_file_tools(workspace), "read_file", path="big.png")
    assert re.search(problem, shown.text)
    with pytest.raises(SettingsError, match=f"@{problem}"):
        load_attachment("big.png", workspace)
