"""Engines: token ids in, more token ids out.

`protocol` defines an engine; `numpy_engine` runs Qwen 3 and Llama checkpoints with numpy alone. Nothing here depends on
tools, text or conversations. Importing this package loads neither numpy nor an engine: names are resolved on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.conversation import ImageInput
    from ferrule.engines.numpy_engine import NumpyEngine
    from ferrule.engines.protocol import (
        Engine,
        EngineFactory,
        Finished,
        FinishReason,
        Generation,
        Sampled,
        Sampling,
    )

_HOMES = {
    "Engine": "protocol",
    "EngineFactory": "protocol",
    "FinishReason": "protocol",
    "Finished": "protocol",
    "Generation": "protocol",
    "ImageInput": "protocol",
    "NumpyEngine": "numpy_engine",
    "Sampled": "protocol",
    "Sampling": "protocol",
}

__all__ = [
    "Engine",
    "EngineFactory",
    "FinishReason",
    "Finished",
    "Generation",
    "ImageInput",
    "NumpyEngine",
    "Sampled",
    "Sampling",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
