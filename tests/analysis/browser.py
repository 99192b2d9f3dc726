"""Opens pages in Chromium, for what only a browser can tell: what runs, what is seen, what fits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser() -> str:
    """The path of Chromium; the test is skipped where there is none."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    pytest.skip("chromium is missing")


def run_browser(page: Path, *options: str) -> str:
    """What a page has become once its scripts have run, as HTML."""
    profile = page.with_name(f"{page.stem}-profile")
    command = [
        find_browser(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--allow-file-access-from-files",
        f"--user-data-dir={profile}",
        "--virtual-time-budget=3000",
        *options,
        "--dump-dom",
        page.as_uri(),
    ]
    environment = {**os.environ, "HOME": str(page.parent)}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


_MEASURE = """<!doctype html><meta charset="utf-8"><title>measures</title><body><script>
const report = {}; let left = PAGES.length;
for (const [name, page, width, measure] of PAGES) {
  const frame = document.createElement("iframe");
  frame.width = width; frame.height = 800; frame.src = page;
  frame.onload = () => setTimeout(() => {
    try { report[name] = new Function("page", "frame", "return " + measure)(frame.contentDocument, frame); }
    catch (error) { report[name] = "error: " + error; }
    if (--left === 0) {
      const shown = document.createElement("pre"); shown.id = "report";
      shown.textContent = encodeURIComponent(JSON.stringify(report)); document.body.append(shown);
    }
  }, 200);
  document.body.append(frame);
}
</script>"""


def measure(folder: Path, cases: dict[str, tuple[Path, int, str]], *options: str) -> dict[str, Any]:
    """The value of an expression of JavaScript in each page (`page`, in `frame`), shown at a width in pixels."""
    pages = [(name, page.as_uri(), width, expression) for name, (page, width, expression) in cases.items()]
    wrapper = folder / "measure.html"
    wrapper.write_text(_MEASURE.replace("PAGES", json.dumps(pages).replace("<", "\\u003c")), encoding="utf-8")
    from urllib.parse import unquote

    dom = run_browser(wrapper, *options)
    _, found, rest = dom.partition('<pre id="report">')
    assert found, dom
    values: dict[str, Any] = json.loads(unquote(rest.partition("</pre>")[0]))
    return values
