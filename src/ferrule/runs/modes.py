"""How calls are written: by the provider's own tools, or in the text, in a notation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule.errors import ModelError

if TYPE_CHECKING:
    from ferrule.models.protocol import Model

DEFAULT_NOTATION = "hermes"
"""The notation for models without tools of their own: JSON between two tags, which most models have seen."""


def speaking(model: Model, mode: str) -> tuple[Model, str]:
    """The model that a pipeline asks, and its mode by name: `auto` is told apart into `api` and a notation's name.

    Raises `ModelError` for a mode that can't be had, `DialectError` for a notation that there isn't.
    """
    has_tools = model.capabilities.native_tools
    if mode == "api" and not has_tools:
        raise ModelError(f"{model.name} has no tools of its own: use mode='auto', or a notation such as 'native'")
    if mode == "api" or (mode == "auto" and has_tools):
        return model, "api"
    from ferrule.dialects.catalogue import get_notation
    from ferrule.models.text_mode import TextModeModel

    name = DEFAULT_NOTATION if mode == "auto" else mode
    return TextModeModel(model, get_notation(name)), name
