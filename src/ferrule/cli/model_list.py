"""The rows of `ferrule models`, for programs and for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ferrule.models.providers import ProviderInfo, known_providers
from ferrule.plugins import installed

_LOCAL = (
    ("embedded", "the model in the package, which uses the calculator"),
    ("local:FOLDER", "a checkpoint in Hugging Face's layout"),
    ("echo", "says back what it is asked"),
)


def model_data() -> list[dict[str, Any]]:
    """Every provider with what is known of it, after what is asked in this process."""
    local = [{"name": name, "what": what} for name, what in _LOCAL]
    plugins = [{"name": f"{one.name}:MODEL", "what": f"a plugin of {one.package}"} for one in installed("models")]
    return [*local, *map(_data, known_providers()), *plugins]


def model_lines() -> Iterator[str]:
    """The same as lines: what is asked in this process, then a line for each provider."""
    providers = known_providers()
    names = [*(name for name, _ in _LOCAL), *(f"{one.name}:MODEL" for one in providers)]
    width = max(map(len, names))
    for name, what in _LOCAL:
        yield f"{name:{width}}  {what}"
    for one in providers:
        told = (one.address or "needs --base-url", _key(one), *_missing(one))
        yield f"{one.name + ':MODEL':{width}}  {'; '.join(told)}"
    for plugin in installed("models"):
        yield f"{plugin.name + ':MODEL':{width}}  a plugin of {plugin.package}"


def _key(one: ProviderInfo) -> str:
    state = "set" if one.key_is_set else "not set" if one.needs_key else "not set, not needed"
    return f"{' or '.join(one.keys)}: {state}"


def _missing(one: ProviderInfo) -> Iterator[str]:
    if not one.is_installed:
        yield f"needs pip install 'ferrule[{one.extra}]'"


def _data(one: ProviderInfo) -> dict[str, Any]:
    return {
        "name": f"{one.name}:MODEL",
        "what": one.label,
        "address": one.address or None,
        "keys": list(one.keys),
        "key_is_set": one.key_is_set,
        "needs_key": one.needs_key,
        "package": one.package,
        "is_installed": one.is_installed,
    }
