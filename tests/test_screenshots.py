"""Compares the pictures of commands with what the commands print."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs"))

from take_screenshots import COMMANDS, FOLDER, take


@pytest.mark.parametrize("name", COMMANDS)
def test_a_picture_shows_what_its_command_prints(name: str) -> None:
    picture = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert picture == take(name), "take it again: make screenshots"


def test_there_are_no_other_pictures() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_picture_is_on_a_page(name: str) -> None:
    pages = [path.read_text(encoding="utf-8") for path in FOLDER.parent.glob("*.md")]
    assert any(f"(screenshots/{name}.svg)" in page for page in pages)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_picture_fetches_nothing(name: str) -> None:
    picture = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert "@font-face" not in picture
    assert "url(http" not in picture
