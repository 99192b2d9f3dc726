"""Every link of the documents leads to a file that is there, and to a heading of it."""

import re
from pathlib import Path

from tables import each_case

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").glob("*.md"))]
FENCED = re.compile(r"^(?P<fence>```+).*?^(?P=fence)$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^]]*\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def read_prose(page: Path) -> str:
    """The page without its blocks of code."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def find_anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts and the site make them."""
    return {
        re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in HEADING.findall(read_prose(page))
    }


@each_case("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = []
    for target, anchor in LINK.findall(read_prose(page)):
        file = page.parent / target if target else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in find_anchors(file)):
            missing.append(f"{target}#{anchor}" if anchor else target)
    assert not missing, f"{page.name} links to what isn't there"


@each_case("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_pages_of_the_site_link_to_no_file_outside_of_it(page: Path) -> None:
    targets = [(page.parent / target).resolve() for target, _ in LINK.findall(read_prose(page)) if target]
    assert [str(target) for target in targets if not target.is_relative_to(ROOT / "docs")] == []


def test_the_first_page_links_to_every_other() -> None:
    linked = {target for target, _ in LINK.findall(read_prose(ROOT / "docs" / "index.md"))}
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"} <= linked
