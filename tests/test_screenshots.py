"""Compares the pictures of commands with what the commands print."""

import struct
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs"))

from take_screenshots import COMMANDS, FOLDER, PAGE_SIZE, PAGES, take


@pytest.mark.parametrize("name", COMMANDS)
def test_a_picture_shows_what_its_command_prints(name: str) -> None:
    picture = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert picture == take(name), "take it again: make screenshots"


def test_there_are_no_other_pictures() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(COMMANDS) | set(PAGES)


@pytest.mark.parametrize("name", [*(f"{name}.svg" for name in COMMANDS), *(f"{name}.png" for name in PAGES)])
def test_a_picture_is_on_a_page(name: str) -> None:
    pages = [path.read_text(encoding="utf-8") for path in FOLDER.parent.glob("*.md")]
    assert any(f"(screenshots/{name})" in page for page in pages)


@pytest.mark.parametrize("name", PAGES)
def test_the_picture_of_a_page_is_a_png_of_its_size(name: str) -> None:
    data = (FOLDER / f"{name}.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == PAGE_SIZE


@pytest.mark.parametrize("name", COMMANDS)
def test_a_picture_fetches_nothing(name: str) -> None:
    picture = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert "@font-face" not in picture
    assert "url(http" not in picture
