"""The tables of prices and context sizes that ship are what `docs/write_prices.py` writes."""

from __future__ import annotations

import re
import sys
import tomllib
from datetime import date, time
from pathlib import Path
from types import SimpleNamespace as Listed

from ferrule.models.prices import read_prices
from ferrule.models.providers import PROVIDERS

sys.path.append(str(Path(__file__).parents[2] / "docs"))
from write_prices import (
    ALIASES,
    CONTEXT_SIZES,
    LISTS,
    PRICES,
    WITHOUT_PRICES,
    make_entry,
    read_models,
    write_context_sizes,
    write_prices,
)

from tables import each_case

DAY = date(2026, 11, 4)


def read(path: Path) -> tuple[str, str]:
    """The text of a table, and the version of genai-prices that it names."""
    text = path.read_text("utf-8")
    found = re.search(r"genai-prices ([\d.]+\d)", text)
    assert found is not None
    return text, found[1]


def test_the_prices_have_the_form_of_the_script() -> None:
    text, version = read(PRICES)
    assert write_prices(tomllib.loads(text), version) == text


def test_the_context_sizes_have_the_form_of_the_script() -> None:
    text, version = read(CONTEXT_SIZES)
    sizes = {
        provider: {int(size): names for size, names in by_size.items()}
        for provider, by_size in tomllib.loads(text).items()
    }
    assert write_context_sizes(sizes, version) == text


def test_every_provider_has_prices_unless_people_run_it_themselves() -> None:
    assert {*LISTS, *WITHOUT_PRICES, *ALIASES} == set(PROVIDERS)
    listed = {name.partition(":")[0] for name in tomllib.loads(PRICES.read_text("utf-8"))}
    assert listed == set(LISTS)
    assert not any(PROVIDERS[name].needs_key for name in WITHOUT_PRICES)


def list_model(identifier: str, prices: object = None, match: object = None) -> Listed:
    return Listed(id=identifier, match=match or Listed(), prices=prices, context_window=None)


def price(input_price: object, output_price: object, **more: object) -> Listed:
    return Listed(input_mtok=input_price, output_mtok=output_price, **more)


def tiered(base: float, *tiers: tuple[int, float]) -> Listed:
    return Listed(base=base, tiers=[Listed(start=start, price=above) for start, above in tiers])


@each_case(
    ("prices", "entry"),
    [
        (price(1, 4, cache_read_mtok=0.1, cache_write_mtok=1.25), [1, 4, {"cached_input": 0.1, "cache_write": 1.25}]),
        # What storing costs isn't the price of writing.
        (price(1, 4, cache_write_mtok=0.3), [1, 4, {}]),
        (
            price(tiered(1, (200_000, 2)), tiered(4, (200_000, 6))),
            [1, 4, {"long": {"above": 200_000, "input": 2, "output": 6}}],
        ),
        (price(tiered(1, (200_000, 2)), 4), [1, 4, {"long": {"above": 200_000, "input": 2, "output": 4}}]),
        (price(tiered(1, (32_000, 2), (200_000, 3)), 4), None),
        (price(1, None), None),
        # A price that begins later ends this one.
        (
            [
                Listed(constraint=None, prices=price(9, 9)),
                Listed(constraint=Listed(start_date=date(2026, 10, 1)), prices=price(1, 4)),
                Listed(constraint=Listed(start_date=date(2027, 2, 1)), prices=price(3, 6)),
                Listed(constraint=Listed(start_date=date(2027, 1, 1)), prices=price(2, 5)),
            ],
            [1, 4, {"until": date(2027, 1, 1)}],
        ),
        # By the time of day: the highest.
        (
            [
                Listed(constraint=None, prices=price(1, 2)),
                Listed(constraint=Listed(start_time=time(1)), prices=price(2, 4)),
            ],
            [2, 4, {}],
        ),
    ],
)
def test_the_prices_of_a_model_become_an_entry(prices: object, entry: tuple[float, float, dict[str, object]]) -> None:
    made = make_entry(list_model("m", prices), DAY, "https://example.com")
    if entry is None:
        assert made is None
        return
    first, last, more = entry
    assert made == {"input": first, "output": last, **more, "date": DAY, "source": "https://example.com"}
    assert read_prices({"openai:m": made})["openai:m"].as_of == DAY


def test_a_model_is_listed_by_the_names_that_stand_for_it_alone() -> None:
    exact = Listed(or_=[Listed(equals="m-latest"), Listed(starts_with="m-")])
    urls = ["https://example.com/1", "https://example.com/2"]
    lists = {
        "openai": Listed(id="openai", models=[list_model("m", match=exact)], pricing_urls=urls),
        "huggingface_groq": Listed(id="huggingface_groq", models=[list_model("a/m", match=exact)], pricing_urls=urls),
        "aws": Listed(id="aws", models=[list_model("meta.m"), list_model("us.anthropic.m")], pricing_urls=urls),
    }
    names = {provider: [name for name, _, _ in read_models(lists, provider)] for provider in LISTS}
    assert {provider: found for provider, found in names.items() if found} == {
        "openai": ["m", "m-latest"],
        "huggingface": ["a/m:groq"],
        "bedrock": ["us.anthropic.m"],
    }
    assert {source for _, _, source in read_models(lists, "openai")} == {urls[0]}
