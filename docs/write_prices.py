"""Writes `models/prices.toml` and `models/context_sizes.toml` from the list of genai-prices (MIT licence), for the
providers of `models/providers.py`: `python docs/write_prices.py 2026-11-04`, with the day on which that list held.

It needs `pip install genai-prices`, which ferrule itself doesn't. A model is listed by its id and by the names that
stand for it alone. Left out are models that aren't priced by text tokens, and those with more than two levels of
prices; where a price depends on the time of day, the highest is written.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from importlib.metadata import version
from json import dumps
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "src" / "ferrule" / "models"
PRICES, CONTEXT_SIZES = FOLDER / "prices.toml", FOLDER / "context_sizes.toml"

LISTS = {
    "anthropic": "anthropic",
    "google": "google",
    "vertex": "google",
    "bedrock": "aws",
    "openai": "openai",
    "azure": "azure",
    "groq": "groq",
    "openrouter": "openrouter",
    "deepseek": "deepseek",
    "mistral": "mistral",
    "together": "together",
    "fireworks": "fireworks",
    "xai": "x-ai",
    "cerebras": "cerebras",
    "huggingface": "huggingface_",
}
"""By provider, the name of its list; Hugging Face's router has one for each server, which its names end with."""
WITHOUT_PRICES = {"vllm", "sglang", "llamacpp", "ollama", "lmstudio", "compatible"}
"""Servers that people run themselves."""
ALIASES = {"openai-responses": "openai"}
"""Providers with the prices of another one."""

_FIELDS = {
    "input": "input_mtok",
    "cached_input": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "audio_input": "input_audio_mtok",
    "output": "output_mtok",
}
_PRICES_HEAD = """\
# US dollars for a million tokens, as the providers published them (`source`) on `date`; written by docs/write_prices.py
# from the list of genai-prices {version} (MIT licence), one model a line. They change: look before you rely on them.
# FERRULE_PRICES names a file in this form that is read instead.
#   cached_input  input read from a cache (default: `input`)   cache_write  input written to one (default: `input`)
#   audio_input   audio in the input (default: `input`)        long         prices of requests with input over `above`
#   until         the day from which another price holds: from then on this one is not used
"""
_SIZES_HEAD = """\
# How many tokens the context of a model has, by provider: as the providers published them; written by
# docs/write_prices.py from the list of genai-prices {version} (MIT licence). They change, and a setting of the program
# overrides them. A snapshot (`gpt-4o-2024-08-06`) that isn't listed has the context of the model it is a snapshot of.
"""


def write_prices(prices: Mapping[str, Mapping[str, Any]], of_version: str) -> str:
    """The text of `prices.toml`, from entries by the names of models."""
    lines = [_PRICES_HEAD.format(version=of_version)]
    previous = ""
    for name, entry in prices.items():
        provider = name.partition(":")[0]
        if provider != previous:
            lines.append(f"\n# {entry['source']}\n")
        previous = provider
        lines.append(f"{dumps(name)} = {_write_value(entry)}\n")
    return "".join(lines)


def write_context_sizes(sizes: Mapping[str, Mapping[int, Iterable[str]]], of_version: str) -> str:
    """The text of `context_sizes.toml`, from the names of models by provider and size."""
    lines = [_SIZES_HEAD.format(version=of_version)]
    for provider, by_size in sizes.items():
        lines.append(f"\n[{provider}]\n")
        for size, names in sorted(by_size.items()):
            listed = " ".join(f"{dumps(name)}," for name in sorted(names))
            wrapped = textwrap.wrap(listed, 112, break_long_words=False, break_on_hyphens=False)
            lines.append("\n".join([f"{size} = [", *(f"    {line}" for line in wrapped), "]\n"]))
    return "".join(lines)


def _write_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_write_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else format(value, ".12f").rstrip("0")
    return value.isoformat() if isinstance(value, date) else dumps(value)


def read_models(lists: Mapping[str, Any], provider: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the models of a provider: (name, model, where its price was published)."""
    wanted = LISTS[provider]
    for found in (one for name, one in lists.items() if name == wanted or (wanted[-1] == "_" and wanted in name)):
        server = f":{found.id.removeprefix(wanted)}" if wanted[-1] == "_" else ""
        for model in found.models:
            for name in sorted({model.id, *_list_exact_names(model.match)}):
                if _is_offered(provider, name):
                    yield f"{name}{server}", model, found.pricing_urls[0]


def _list_exact_names(clause: Any) -> Iterator[str]:
    if isinstance(exact := getattr(clause, "equals", None), str):
        yield exact
    for one in getattr(clause, "or_", ()):
        yield from _list_exact_names(one)


def _is_offered(provider: str, name: str) -> bool:
    """Whether the provider takes this name from ferrule, which asks Bedrock for Claude only."""
    if provider in ("openrouter", "huggingface"):
        return "/" in name
    return "anthropic" in name if provider == "bedrock" else provider != "google" or not name.startswith("claude")


def make_entry(model: Any, day: date, source: str) -> dict[str, Any] | None:
    """The entry of a model in the table of prices; None if the table can't express its price."""
    prices, until = _choose_prices(model.prices, day)
    given = {field: price for field, key in _FIELDS.items() if (price := getattr(prices, key, None)) is not None}
    tiers = [tier for price in given.values() for tier in getattr(price, "tiers", ())]
    if not {"input", "output"} <= given.keys() or len({tier.start for tier in tiers}) > 1:
        return None
    entry: dict[str, Any] = {field: float(getattr(price, "base", price)) for field, price in given.items()}
    if tiers:
        raised = {field: price.tiers[0].price if hasattr(price, "tiers") else price for field, price in given.items()}
        entry["long"] = {"above": tiers[0].start, **{field: float(price) for field, price in raised.items()}}
    for rates in (entry, entry.get("long", {})):
        # Under the price of the input, it is what storing costs: ferrule doesn't know for how long that is.
        if rates.get("cache_write", 0) < rates.get("input", 0):
            rates.pop("cache_write", None)
        # Input from a cache never costs more: the list has a few mistakes.
        if rates.get("cached_input", 0) > rates.get("input", 0):
            rates.pop("cached_input")
    return {**entry, **({"until": until} if until else {}), "date": day, "source": source}


def _choose_prices(prices: Any, day: date) -> tuple[Any, date | None]:
    """The prices that hold on a day, and the day from which others do, if there is one."""
    if not isinstance(prices, list):
        return prices, None
    held: list[Any] = []
    until = None
    for one in prices:
        start = getattr(one.constraint, "start_date", None)
        if start is not None and start > day:
            until = min(start, until or start)
        elif hasattr(one.constraint, "start_time"):
            held.append(one.prices)
        else:
            held = [one.prices]
    return max(held, key=lambda one: getattr(one.input_mtok, "base", one.input_mtok) or 0), until


def main(day: date) -> None:
    """Write both tables."""
    from genai_prices.data import providers

    lists = {one.id: one for one in providers}
    prices: dict[str, dict[str, Any]] = {}
    sizes: dict[str, dict[int, set[str]]] = {}
    for provider in LISTS:
        found = sorted(read_models(lists, provider), key=lambda one: one[0])
        for name, model, source in found:
            if entry := make_entry(model, day, source):
                prices[f"{provider}:{name}"] = entry
            if model.context_window:
                sizes.setdefault(provider, {}).setdefault(model.context_window, set()).add(name)
    used = version("genai-prices")
    PRICES.write_text(write_prices(prices, used), encoding="utf-8")
    CONTEXT_SIZES.write_text(write_context_sizes(sizes, used), encoding="utf-8")
    print(f"{len(prices):,} prices, {sum(len(one) for by_size in sizes.values() for one in by_size.values()):,} sizes")


if __name__ == "__main__":
    main(date.fromisoformat(sys.argv[1]))
