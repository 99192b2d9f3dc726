"""What tells whether a text is in a grammar, and the engine that recites, are in the folders of their own rooms."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in ("dialects", "models"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
