"""Compares the reference with the package, and the site's navigation with the pages."""

import re
import sys
from pathlib import Path

import pytest

import ferrule

sys.path.append(str(Path(__file__).parents[1] / "docs"))

from write_reference import FOLDER, write_reference

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| \[`(\w+)(?: \([\w.]+\))?`\]\(.*?\) \| `([\w.]+)` \| (.*) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The reference as it would be written now."""
    return write_reference()


def test_the_reference_is_as_the_package_is(pages: dict[str, str]) -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    changed = [name for name in {*pages, *written} if pages.get(name) != written.get(name)]
    assert changed == [], "write it again: python docs/write_reference.py"


def test_every_exported_name_has_an_entry(pages: dict[str, str]) -> None:
    entries = {name for text in pages.values() for name, module, _ in ROW.findall(text) if module == "ferrule"}
    assert set(ferrule.__all__) - {"__version__"} == entries


def test_every_entry_says_what_it_is(pages: dict[str, str]) -> None:
    silent = [name for text in pages.values() for name, _, summary in ROW.findall(text) if summary.startswith("(no ")]
    assert silent == []


def test_every_field_of_every_event_is_explained(pages: dict[str, str]) -> None:
    assert pages["events.md"].count("| field | type | default | meaning |") >= 13
    assert re.findall(r"^\| `(\w+)` \|.*\|  \|$", pages["events.md"], re.MULTILINE) == []


def test_the_navigation_has_every_page() -> None:
    listed = set(re.findall(r"^ *- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert listed == pages
