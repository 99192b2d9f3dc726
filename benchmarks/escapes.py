"""What hostile programs reach in a plain subprocess and in the sandbox, family by family.

    python benchmarks/escapes.py [--json] [--write]

Runs every payload of `tests/sandbox/escapes` as root (where this is root) and as an ordinary user: in a plain
subprocess, where it should hit its canary, and in the sandbox in each tier, the container tier under a filter that
refuses what ordinary containers refuse. Ends with 1 where a payload got out, or did not hit where it should. `--write`
puts the table into docs/sandbox.md. Takes some minutes.
"""

import argparse
import json
import re
import sys
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "sandbox.md"
MARKED = re.compile(r"(?<=<!-- escapes -->\n).*?(?=<!-- end -->)", re.DOTALL)

sys.path[:0] = [str(ROOT / "tests" / "sandbox"), str(ROOT / "src")]

from escaping.table import Row, markdown, rows  # noqa: E402 - found only on the path above

STAR = "\\* Not promised in this tier: see the table of tiers above."


def write(table: str) -> None:
    """Put the table between its marks."""
    page = PAGE.read_text(encoding="utf-8")
    if not MARKED.search(page):
        sys.exit(f"{PAGE} has no <!-- escapes --> with an <!-- end --> after it")
    PAGE.write_text(MARKED.sub(lambda _: f"\n{table}\n\n{STAR}\n\n", page), encoding="utf-8")


def main() -> None:
    """Run all and print."""
    parser = argparse.ArgumentParser(description="What hostile programs reach, in plain and in the sandbox.")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    parser.add_argument("--write", action="store_true", help="put the table into docs/sandbox.md")
    arguments = parser.parse_args()
    found: list[Row] = rows()
    print(json.dumps([asdict(row) for row in found], indent=2) if arguments.json else f"{markdown(found)}\n\n{STAR}")
    if arguments.write:
        write(markdown(found))
    wrong = [name for row in found for name in row.got_out] + [name for row in found for name in row.missed]
    if wrong:
        sys.exit("not as it should be: " + ", ".join(wrong))


if __name__ == "__main__":
    main()
