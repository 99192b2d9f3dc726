"""The examples of docs/executor.md and docs/policy.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCUMENTS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["executor.md", "policy.md"])
def test_the_examples_run(name):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCUMENTS / name).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), name, "exec"), {"__name__": "example"})
