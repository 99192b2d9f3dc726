"""Compares the reference with the package, and the site's navigation with the pages."""

import re
import sys
from pathlib import Path

import pytest

import ferrule

sys.path.append(str(Path(__file__).parents[1] / "docs"))

from write_reference import FOLDER, write_reference

ROOT = Path(__file__).parents[1]
PAGES = write_reference()
ROW = re.compile(r"^\| \[`(\w+)(?: \([\w.]+\))?`\]\(.*?\) \| `([\w.]+)` \| (.*) \|$", re.MULTILINE)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_as_the_package_is(name: str) -> None:
    written = FOLDER / name
    assert written.exists(), "write it: python docs/write_reference.py"
    assert written.read_text(encoding="utf-8") == PAGES[name], "write it again: python docs/write_reference.py"


def test_the_reference_has_no_other_pages() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(PAGES)


def test_every_exported_name_has_an_entry() -> None:
    entries = {name for text in PAGES.values() for name, module, _ in ROW.findall(text) if module == "ferrule"}
    assert set(ferrule.__all__) - {"__version__"} == entries


def test_every_entry_says_what_it_is() -> None:
    silent = [name for text in PAGES.values() for name, _, summary in ROW.findall(text) if summary.startswith("(no ")]
    assert silent == []


def test_every_field_of_every_event_is_explained() -> None:
    assert PAGES["events.md"].count("| field | type | default | meaning |") >= 13
    assert re.findall(r"^\| `(\w+)` \|.*\|  \|$", PAGES["events.md"], re.MULTILINE) == []


def test_the_navigation_has_every_page() -> None:
    listed = set(re.findall(r"^ *- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert listed == pages
