"""The tools and calls of the executor's tests, which these show to a person."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "execution"))
