"""The servers that hosted models are tried on are in a folder of their own."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in (Path(__file__).parent, Path(__file__).parents[1] / "servers"):
    sys.path.insert(0, str(folder))
