"""An offer in the shapes of the hosted APIs."""

from __future__ import annotations

import re
from typing import Any, Literal

from ferrule.errors import RegistryError
from ferrule.toolspec import ToolSpec

_PROVIDER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def offered(spec: ToolSpec, shape: Literal["openai", "anthropic"]) -> dict[str, Any]:
    """A tool as OpenAI's Chat Completions or Anthropic's Messages take it.

    Raises `RegistryError` for a name with a dot, which both refuse, and for a shape that isn't known.
    """
    if not _PROVIDER_NAME.fullmatch(spec.name):
        raise RegistryError(f"{spec.name!r} holds a '.', which {shape} refuses in a name; use renamed")
    if shape == "openai":
        function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
        return {"type": "function", "function": function}
    if shape == "anthropic":
        return {"name": spec.name, "description": spec.description, "input_schema": spec.parameters}
    raise RegistryError(f"there is no shape {shape!r}; the shapes are openai and anthropic")
