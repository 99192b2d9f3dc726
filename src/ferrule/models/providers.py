"""Who can be asked by name: where they are, what they need, and whether it is there.

The addresses and quirks of those who speak OpenAI's formats are in `compatible.py`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec

from ferrule.models.compatible import PROVIDERS

# Package, module and extra.
_OPENAI = ("openai", "openai", "openai")
_ANTHROPIC = ("anthropic", "anthropic", "anthropic")
_GOOGLE = ("google-genai", "google.genai", "google")


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """One provider. `keys` are the environment variables of its key, `url` that of another address."""

    name: str
    label: str
    default_address: str
    keys: tuple[str, ...]
    needs_key: bool
    package: str
    module: str
    extra: str
    url: str | None = None

    @property
    def address(self) -> str:
        """Where it is asked as things stand; empty where an address must be given."""
        return (os.environ.get(self.url) if self.url else None) or self.default_address

    @property
    def key_is_set(self) -> bool:
        """Whether the environment has a key for it."""
        return any(os.environ.get(key, "").strip() for key in self.keys)

    @property
    def is_installed(self) -> bool:
        """Whether its package can be imported; it isn't."""
        try:
            return find_spec(self.module) is not None
        except ModuleNotFoundError:
            return False


def known_providers() -> tuple[ProviderInfo, ...]:
    """Every provider that `model("<name>:<model>")` takes."""
    from ferrule.models import anthropic, google

    compatible = [
        ProviderInfo(one.name, one.label, one.base_url, (one.key,), one.needs_key, *_OPENAI, one.url)
        for one in PROVIDERS.values()
    ]
    own = (
        ProviderInfo(
            "anthropic", "Anthropic", anthropic.ADDRESS, (anthropic.KEY,), True, *_ANTHROPIC, anthropic.ADDRESS_VARIABLE
        ),
        ProviderInfo("google", "Google", google.ADDRESS, google.KEYS, True, *_GOOGLE, google.ADDRESS_VARIABLE),
    )
    return (*own, *compatible)
