"""How much broken indentation of real code is repaired, and how often with another meaning.

    python benchmarks/indentation.py [--json] [--seed 14] [--count 500]

Corrupts functions and classes of the standard library until they can't be parsed (`tests/analysis`), and compares the
syntax trees of what is repaired with those of the originals. The other side is the order of the fourth seed, which
takes the first strategy whose code can be parsed. Ends with 1 if less than half is repaired, or more than 1% of that
wrongly.
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "analysis"), str(ROOT / "src")]

from indentation_corruptions import count_outcomes, repair, take_first_that_parses  # noqa: E402 - see the path above

OUTCOMES = ("repaired", "left", "wrong")


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description="How much broken indentation is repaired, and how much of it wrongly.")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--count", type=int, default=500)
    options = parser.parse_args()
    sides = {"ferrule": repair, "the first that parses": take_first_that_parses}
    found = {name: count_outcomes(options.seed, options.count, by) for name, by in sides.items()}
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for name, kinds in found.items():
            print(f"{name:32} {'all':>5} " + " ".join(f"{outcome:>9}" for outcome in OUTCOMES))
            for kind, counts in kinds.items():
                print(f"  {kind:30} {counts.total():5} " + " ".join(f"{counts[outcome]:9}" for outcome in OUTCOMES))
    total = found["ferrule"]["all"]
    if total["repaired"] < options.count / 2 or total["wrong"] > (total["repaired"] + total["wrong"]) / 100:
        sys.exit("less than half was repaired, or more than 1% of it wrongly")


if __name__ == "__main__":
    main()
