"""Which engine runs a checkpoint, by one rule, and why."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ferrule.dialects.families.nanochat_tools import NanochatTools
from ferrule.engines.config import read_config
from ferrule.engines.families import RUN_FAMILIES
from ferrule.errors import EngineError, ModelError
from ferrule.models.checkpoints.files import (
    SINGLE_FILE,
    CheckpointWeights,
    check_shapes,
    find_weights,
    read_checkpoint_config,
)

if TYPE_CHECKING:
    from ferrule.engines.transformers_engine import TransformersEngine
    from ferrule.tokens.tokenizer import Tokenizer

EngineName: TypeAlias = Literal["numpy", "transformers"]
TRANSFORMERS_OPTIONS = ("dtype", "device_map", "trust_remote_code", "kv_memory")
"""The options of `load_local_model` that only the engine of transformers has."""
SMALL = 100_000_000
"""The most weights with which numpy is preferred: below, it answers before torch is imported, and is no slower."""
_PACKAGES = ("torch", "transformers")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine of a checkpoint, and the reason in words."""

    name: EngineName
    why: str


def choose_engine(folder: Path, dialect: str, options: Collection[str] = ()) -> EngineChoice:
    """The engine that runs a checkpoint if none is named.

    numpy runs what it can and is small (`SMALL`), the embedded model's dialect whatever its size, and what it can
    where torch isn't installed; transformers runs the rest, and whatever is given one of its own `options`. Raises
    `ModelError` if neither can.
    """
    weights = find_weights(folder)
    check_shapes(folder, read_checkpoint_config(folder), weights)  # a damaged one is no reason for the other engine
    own = next((name for name in TRANSFORMERS_OPTIONS if name in options), None)
    obstacle = find_numpy_obstacle(folder, weights) if own is None else f"{own} is an option of transformers"
    missing = find_missing_package()
    count = count_weights(weights)
    if obstacle is None:
        if dialect == NanochatTools.name:
            return EngineChoice("numpy", "it writes the embedded model's dialect")
        if count <= SMALL:
            return EngineChoice("numpy", f"it is small: {count:,} weights")
        if missing is not None:
            return EngineChoice("numpy", f"{missing} isn't installed (pip install 'ferrule[local]')")
        return EngineChoice("transformers", f"it has {count:,} weights, which is much for numpy")
    if missing is not None:
        raise ModelError(f"{folder} needs {missing}, as {obstacle}; install it with: pip install 'ferrule[local]'")
    return EngineChoice("transformers", obstacle)


def find_numpy_obstacle(folder: Path, weights: CheckpointWeights) -> str | None:
    """Why the engine of numpy can't run a checkpoint; None if it can."""
    from ferrule.engines.weights import DTYPES

    if len(weights.files) > 1:
        return f"its weights are in {len(weights.files)} files, and numpy's engine reads {SINGLE_FILE} alone"
    unread = [dtype for dtype in weights.dtypes if dtype not in DTYPES]
    if unread:
        return f"numpy's engine reads no weights of type {unread[0]}"
    try:
        read_config(config := folder / "config.json")
    except EngineError as error:
        return f"numpy's engine doesn't run it: {str(error).removeprefix(f'{config}: ')}"
    return None


def find_missing_package() -> str | None:
    """A package that the engine of transformers needs and that isn't installed, found without importing it."""
    return next((name for name in _PACKAGES if find_spec(name) is None), None)


def count_weights(weights: CheckpointWeights) -> int:
    """How many numbers the tensors have."""
    return sum(math.prod(place.shape) for place in weights.tensors.values())


def open_transformers_engine(folder: Path, tokenizer: Tokenizer, options: dict[str, Any]) -> TransformersEngine:
    """Open a checkpoint with transformers, its files checked first. Raises `ModelError` and `EngineError`."""
    missing = find_missing_package()
    if missing is not None:
        raise ModelError(f"engine='transformers' needs {missing}; install it with: pip install 'ferrule[local]'")
    check_family(folder)
    check_shapes(folder, read_checkpoint_config(folder), find_weights(folder))
    from ferrule.engines.transformers_engine import TransformersEngine

    return TransformersEngine.load(folder, vocabulary=tokenizer, **options)


def check_family(folder: Path) -> None:
    """Raise `ModelError` for a family that transformers' engine doesn't run."""
    config = read_checkpoint_config(folder)
    if config.family not in RUN_FAMILIES:
        by = f", which {config.own_code} defines," if config.own_code else ""
        raise ModelError(
            f"{folder}: the family {config.family or 'of its config.json'!r}{by} is not run; those that are: "
            f"{', '.join(RUN_FAMILIES)}"
        )
