"""What tokens cost, from a table in TOML or a mapping: dollars per million tokens, with the date on which they held.

["openai:gpt-4o"]
input = 2.50
cached_input = 1.25   # read from a cache; defaults to `input`, as do `cache_write` and `audio_input`
output = 10.00
date = 2026-11-04
source = "https://developers.openai.com/api/docs/pricing"

FERRULE_PRICES names a file that replaces the package's table; `configure_prices` adds prices to either.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from ferrule.errors import SettingsError
from ferrule.events import Usage
from ferrule.sandbox.own_files import protect_own_file

VARIABLE = "FERRULE_PRICES"

_RATES = ("input", "output", "cached_input", "cache_write", "audio_input")
_FIELDS = (*_RATES, "long", "date", "until", "source")
_LONG_FIELDS = (*_RATES, "above")
_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$|[-@]\d{8}$")


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars per million tokens. Reasoning is output."""

    input: float
    output: float
    cached_input: float
    cache_write: float
    audio_input: float

    def compute_cost(self, usage: Usage) -> float:
        """The cost of one request, in US dollars."""
        # Cached tokens may be audio too; no answer says how many.
        audio = min(usage.audio_tokens, usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens)
        fresh = usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens - audio
        spent = fresh * self.input + usage.cached_tokens * self.cached_input + usage.sampled_tokens * self.output
        spent += usage.cache_write_tokens * self.cache_write + audio * self.audio_input
        return spent / 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, since when that is known, and from where."""

    rates: Rates
    as_of: date | None = None
    """A day on which the source had these prices; None if nobody said."""
    source: str = ""
    """Where they were published."""
    long_rates: Rates | None = None
    """The rates of a request whose input has more than `long_above` tokens."""
    long_above: int = 0
    until: date | None = None
    """The day from which other prices hold."""

    @property
    def is_free(self) -> bool:
        """Whether tokens cost nothing."""
        rates = (self.rates, self.long_rates or self.rates)
        return all(one.input == one.output == one.cache_write == one.audio_input == 0 for one in rates)

    def describe(self) -> dict[str, Any]:
        """The rates as the fields of a table of prices, which `read_prices` reads."""
        if self.long_rates is None:
            return asdict(self.rates)
        return asdict(self.rates) | {"long": asdict(self.long_rates) | {"above": self.long_above}}

    def compute_cost(self, *usages: Usage) -> float:
        """The cost of requests, in US dollars. Each is one request: what is long depends on the request."""
        return sum(self._select_rates(usage).compute_cost(usage) for usage in usages)

    def _select_rates(self, usage: Usage) -> Rates:
        is_long = self.long_rates is not None and usage.prompt_tokens > self.long_above
        return self.long_rates if is_long and self.long_rates is not None else self.rates


_IN_PROCESS = ("embedded", "local")
_FREE = Price(Rates(0, 0, 0, 0, 0), source="it runs in this process")

PriceSource: TypeAlias = "Mapping[str, Any] | str | Path"
"""A table of prices: a mapping of names to `Price`s or to the fields of the file, or the path of such a file."""

_configured: dict[str, Price] = {}


def find_price(model: str, prices: PriceSource | None = None, *, on: date | None = None) -> Price | None:
    """The price of a model by its name (`openai:gpt-4o`) on a day, today if left out; None if none is known.

    The first of these that has one counts: `prices`, what `configure_prices` was given, the file of FERRULE_PRICES or
    else the package's. A name may be a pattern (`ollama:*`), and a snapshot (`openai:gpt-4o-2024-08-06`) that isn't
    listed has the price of the model it is a snapshot of. A model in this process costs nothing.

    Raises `SettingsError` for a table that can't be read.
    """
    day = on or datetime.now(UTC).date()
    names = tuple(_list_names(model))
    file = os.environ.get(VARIABLE, "")
    last = _load_file(file) if file else _read_own(names)
    for table in (read_prices(prices) if prices is not None else {}, _configured, last):
        for name in names:
            price = table[name] if name in table else _match_pattern(table, name)
            if price is not None:
                return price if price.until is None or day < price.until else None
    return _FREE if runs_in_process(model) else None


def runs_in_process(model: str) -> bool:
    """Whether a name is that of a model in this process (`embedded`, `local:FOLDER`), for which nobody is paid."""
    return model.partition(":")[0] in _IN_PROCESS


def configure_prices(prices: PriceSource | None) -> None:
    """Use these prices in this process before any others; None removes them. Raises `SettingsError`."""
    found = {} if prices is None else read_prices(prices)
    _configured.clear()
    _configured.update(found)


def read_prices(prices: PriceSource) -> dict[str, Price]:
    """A table of prices: see `PriceSource`. Raises `SettingsError`, naming the entry."""
    if isinstance(prices, str | Path):
        return _load_file(str(prices))
    if not isinstance(prices, Mapping):
        raise SettingsError(f"prices must be a mapping of models to prices, or the path of a file, not {prices!r}")
    return _read_table(prices, "the prices given")


def _list_names(model: str) -> Iterable[str]:
    """The names under which a model's price may be listed, the most exact first."""
    provider, colon, name = model.partition(":")
    # Both of OpenAI's APIs have the same prices.
    providers = (provider, "openai") if provider == "openai-responses" else (provider,)
    for one in providers:
        yield f"{one}{colon}{name}"
    if (undated := _DATED.sub("", name)) != name:
        for one in providers:
            yield f"{one}{colon}{undated}"


def _match_pattern(table: Mapping[str, Price], name: str) -> Price | None:
    found = [pattern for pattern in table if "*" in pattern and fnmatchcase(name, pattern)]
    return table[max(found, key=len)] if found else None


@lru_cache(maxsize=8)
def _load_file(path: str) -> dict[str, Price]:
    # Few programs look up costs, and this takes a while to import.
    from ferrule._util.toml_text import parse_toml

    protect_own_file(path, "the prices of this session")
    try:
        return _read_table(parse_toml(Path(path).read_bytes()), path)
    except (OSError, ValueError) as error:
        raise SettingsError(f"the prices in {path} can't be read: {error}") from error


@lru_cache(maxsize=64)
def _read_own(names: tuple[str, ...]) -> dict[str, Price]:
    """The package's prices of these models. Its file has thousands, one a line: parsing all of them takes a while."""
    import tomllib
    from importlib.resources import files

    text = files("ferrule.models").joinpath("prices.toml").read_text("utf-8")
    beginnings = tuple(f'"{name}" = ' for name in names)
    lines = [line for line in text.splitlines() if line.startswith(beginnings)]
    return _read_table(tomllib.loads("\n".join(lines)), "ferrule's own prices.toml")


def _read_table(table: Mapping[str, Any], where: str) -> dict[str, Price]:
    try:
        return {name: one if isinstance(one, Price) else _read_price(name, one) for name, one in table.items()}
    except ValueError as error:
        raise SettingsError(f"the prices in {where} can't be read: {error}") from error


def _read_price(name: str, entry: Any) -> Price:
    _check_fields(name, entry, _FIELDS)
    rates = _read_rates(name, entry)
    for field in ("date", "until"):
        if field in entry and not isinstance(entry[field], date):
            raise ValueError(f"{name!r}: {field} must be a date such as 2026-01-31, not {entry[field]!r}")
    source = entry.get("source", "")
    if not isinstance(source, str):
        raise ValueError(f"{name!r}: source must be a text, not {source!r}")
    long = entry.get("long")
    if long is None:
        return Price(rates, entry.get("date"), source, until=entry.get("until"))
    _check_fields(f"{name}, long", long, _LONG_FIELDS)
    above = long.get("above")
    if not isinstance(above, int) or above <= 0:
        raise ValueError(f"{name!r}: long needs above, a number of tokens, not {above!r}")
    return Price(rates, entry.get("date"), source, _read_rates(f"{name}, long", long), above, entry.get("until"))


def _check_fields(name: str, entry: Any, known: Iterable[str]) -> None:
    if not isinstance(entry, Mapping):
        raise ValueError(f"{name!r} must be a table with input and output, not {entry!r}")
    if unknown := sorted(set(entry) - set(known)):
        raise ValueError(f"{name!r} has the unknown field {unknown[0]!r}; known are {', '.join(known)}")


def _read_rates(name: str, entry: Mapping[str, Any]) -> Rates:
    given = {field: entry[field] for field in _RATES if field in entry}
    for field, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ValueError(f"{name!r}: {field} must be dollars per million tokens, not {value!r}")
    if missing := [field for field in ("input", "output") if field not in given]:
        raise ValueError(f"{name!r} needs {missing[0]}: dollars per million tokens")
    default = given["input"]
    return Rates(**{"cached_input": default, "cache_write": default, "audio_input": default, **given})
