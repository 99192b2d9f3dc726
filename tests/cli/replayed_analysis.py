"""The analysis that the documents show: the recording in `examples/`, replayed by the command.

python tests/cli/replayed_analysis.py     # writes what it prints into the documents anew
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "analysis.md")
COMMAND = ("analyze", "--replay", "examples/analysis/sales.jsonl")
BLOCK = re.compile(r"(<!-- replayed by tests/cli/replayed_analysis.py -->\n```text\n).*?(```\n)", re.DOTALL)


def replay() -> str:
    """What the command prints on stdout. The progress is on stderr: tasks that run together end in any order there."""
    # COLUMNS, which parallel runs of the tests set, would be the width of the answer.
    own = {name: value for name, value in os.environ.items() if not name.startswith("FERRULE") and name != "COLUMNS"}
    done = subprocess.run(
        [sys.executable, "-m", "ferrule", *COMMAND],
        cwd=ROOT,
        env={**own, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8", "XDG_CONFIG_HOME": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


def insert(page: Path, shown: str) -> str:
    """The text of a page with this output; the README, which is short, has the answer alone."""
    text = page.read_text(encoding="utf-8")
    if page.name == "README.md":
        shown = shown.partition("\n\n")[0] + "\n...\n"
    assert BLOCK.search(text), f"{page} has no place for it"
    return BLOCK.sub(lambda found: f"{found[1]}$ ferrule {' '.join(COMMAND)}\n{shown}{found[2]}", text)


def main() -> None:
    """Write the output into the documents."""
    shown = replay()
    for page in PAGES:
        page.write_text(insert(page, shown), encoding="utf-8")


if __name__ == "__main__":
    main()
