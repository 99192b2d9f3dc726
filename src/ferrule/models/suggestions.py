"""What a person may have meant by a name that isn't a model's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_IN_PROCESS = ("embedded", "echo")
_MOST_LETTERS_OFF = 2
_MAKERS = {
    r"gpt-\d|chatgpt|o[1-9]\b": "openai",
    r"claude": "anthropic",
    r"gemini": "google",
    r"grok": "xai",
    r"mistral|magistral|ministral|codestral|devstral|pixtral": "mistral",
    r"deepseek-(chat|reasoner)": "deepseek",
    r"gpt-oss|qwen|qwq|llama|gemma|phi|deepseek|granite|olmo|smollm": "ollama",
}
"""How the models of a provider are called, as patterns; open weights are in the catalogue of Ollama."""


def describe_unknown_model(name: str) -> str:
    """Describe what is wrong with the name of a model, with the nearest name, or else all providers."""
    from ferrule.models.providers import PROVIDERS
    from ferrule.tools.plugins import find_plugins

    providers = sorted({*PROVIDERS, *(plugin.name for plugin in find_plugins("models"))})
    provider, colon, model = name.partition(":")
    if not model and provider in ("local", *providers):
        what = "FOLDER" if provider == "local" else "MODEL"
        return f"{name!r} names no model: add one after the colon, {provider}:{what}"
    near = next(_find_candidates(provider, colon, model, providers), None)
    if near is not None:
        return f"unknown model {name!r}; did you mean {near}?"
    return (
        f"unknown model {name!r}; expected embedded, echo, local:<folder>, or <provider>:<model> with one of the "
        f"providers {', '.join(providers)}"
    )


def _find_candidates(provider: str, colon: str, model: str, providers: list[str]) -> Iterator[str]:
    """Find names that may have been meant, the likeliest first."""
    from ferrule.tools.registry import find_nearest_names

    whole = f"{provider}{colon}{model}"
    if Path(whole, "config.json").is_file():
        yield f"local:{whole}"
    for pattern, maker in _MAKERS.items():
        if re.match(pattern, whole, re.IGNORECASE):
            yield f"{maker}:{whole if re.search(r'[0-9-]', whole) else 'MODEL'}"
            break
    # Others write `openai/gpt-5`.
    first, slash, rest = whole.partition("/")
    if slash and rest and first in providers:
        yield f"{first}:{rest}"
    if not colon:
        if "/" in whole and Path(whole).is_dir():
            yield f"local:{whole}"
        yield from find_nearest_names(provider, _IN_PROCESS)[:1]
    for one in find_nearest_names(provider, ("local", *providers)):
        if abs(len(one) - len(provider)) <= _MOST_LETTERS_OFF:
            yield f"{one}:{model or ('FOLDER' if one == 'local' else 'MODEL')}"
