"""What tokens cost, from a replaceable table in TOML: FERRULE_PRICES names another file.

["openai:gpt-4o"]
input = 2.50          # US dollars per million tokens
cached_input = 1.25   # for cached input; defaults to `input`
output = 10.00
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ferrule.errors import SettingsError
from ferrule.events import Usage

VARIABLE = "FERRULE_PRICES"


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: float
    cached_input: float
    output: float

    def compute_cost(self, usage: Usage) -> float:
        """The cost of a run with this usage, in US dollars."""
        fresh = usage.prompt_tokens - usage.cached_tokens
        spent = fresh * self.input + usage.cached_tokens * self.cached_input + usage.sampled_tokens * self.output
        return spent / 1_000_000


def find_price(model: str) -> Price | None:
    """The price of a model by its name (`openai:gpt-4o`); None if the table has none. Raises `SettingsError`."""
    return _load_table(os.environ.get(VARIABLE, "")).get(model)


@lru_cache(maxsize=8)
def _load_table(path: str) -> dict[str, Price]:
    # Few programs look up costs, and these take a while to import.
    import tomllib
    from importlib.resources import files

    where = path or "ferrule's own prices.toml"
    try:
        text = Path(path).read_text("utf-8") if path else files("ferrule.models").joinpath("prices.toml").read_text()
        return {name: _read_price(name, entry) for name, entry in tomllib.loads(text).items()}
    except (OSError, ValueError) as error:
        raise SettingsError(f"the prices in {where} can't be read: {error}") from error


def _read_price(name: str, entry: Any) -> Price:
    given = entry if isinstance(entry, dict) else {}
    known = {key: value for key, value in given.items() if isinstance(value, int | float) and value >= 0}
    if set(known) != set(given) or not {"input", "output"} <= set(known) <= {"input", "cached_input", "output"}:
        raise ValueError(f"{name!r} needs input and output, and may have cached_input: dollars per million tokens")
    return Price(known["input"], known.get("cached_input", known["input"]), known["output"])
