"""Builds the site of `make docs`, which warns of nothing and asks no other host for anything."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\bhref=["']?(?:https?:)?//"""
)
FETCHED_BY_STYLE = re.compile(r"""(?:url\(|@import\s*)["']?(?:https?:)?//""")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a warning is an error."""
    pytest.importorskip("mkdocs", reason="mkdocs is missing")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= {path.relative_to(site).as_posix() for path in site.rglob("*.html")}


def test_no_other_host_is_asked(site: Path) -> None:
    asked = [path for path in site.rglob("*.html") if FETCHED.search(path.read_text(encoding="utf-8"))]
    for pattern in ("*.css", "*.svg", "*.html"):
        asked += [path for path in site.rglob(pattern) if FETCHED_BY_STYLE.search(path.read_text(encoding="utf-8"))]
    assert asked == []


def test_the_search_works_without_a_server(site: Path) -> None:
    assert (site / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __index")
    assert "assets/iframe-worker.js" in (site / "index.html").read_text(encoding="utf-8")
    assert "SessionGrants" in (site / "search" / "search_index.js").read_text(encoding="utf-8")


def test_the_reference_shows_signatures(site: Path) -> None:
    page = (site / "reference" / "pipelines.html").read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", page)))
    assert re.search(r"\bmodel ?\( ?name", text)
    assert "on_ask" in text
    assert "::: ferrule" not in text
