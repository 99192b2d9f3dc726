"""Holds the README to its claims that can be counted, and to its length."""

import re
from pathlib import Path

from ferrule.dialects.catalogue import load_families

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_families_are_counted() -> None:
    # Some notations are of no family's: any model can be asked to write them.
    families = [family for family in load_families().values() if not family.models.startswith("any model")]
    assert f"**Calls of {len(families)} model families.**" in README


def test_the_first_screen_has_the_points_one_example_and_its_recording() -> None:
    first_screen = "\n".join(README.splitlines()[:30])
    assert len(re.findall(r"^- \*\*", first_screen, re.MULTILINE)) == 5
    assert first_screen.index("```python") < first_screen.index("```console") < first_screen.index("97,406,784")


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 150
