"""The embedded model: its weights and its model card, and what steers the calls of a model of this size.

`models/` knows of this room by two strings in `models/checkpoints/loading.py`, and nothing else below it does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from ferrule.engines import EngineFactory
    from ferrule.models.local import LocalModel

RuleName = Literal["copy_boundaries", "copying", "missing", "named_numbers", "relevance", "told_numbers", "withholding"]
"""What steers the calls, by the name of its file in this room."""
RULES: frozenset[str] = frozenset(get_args(RuleName))


def find_embedded_folder() -> Path:
    """The folder of the embedded model's files."""
    return Path(__file__).parent


def load_embedded_model(*, engine: EngineFactory | None = None) -> LocalModel:
    """The model in the package, which uses the calculator and any other tools. Nothing is downloaded."""
    from ferrule.models.checkpoints.loading import load_local_model

    model = load_local_model(find_embedded_folder(), name="embedded", engine=engine or "numpy")
    model.tools_optional = False
    return model
