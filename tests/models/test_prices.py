"""What tokens cost: the package's prices, others' in their place, and what is in no table."""

from __future__ import annotations

import tomllib
from datetime import date
from importlib.resources import files

import pytest

from ferrule import Usage, model
from ferrule.errors import SettingsError
from ferrule.events import MessageFinished
from ferrule.models.prices import Price, configure_prices, find_price, read_prices
from ferrule.models.scripted import ScriptedModel

MILLION = 1_000_000


@pytest.fixture(autouse=True)
def _as_shipped(monkeypatch):
    monkeypatch.delenv("FERRULE_PRICES", raising=False)
    yield
    configure_prices(None)


def cost(usage: Usage, **fields) -> float:
    return read_prices({"m": fields})["m"].compute_cost(usage)


def test_every_published_price_has_its_date_and_its_source() -> None:
    table = read_prices(tomllib.loads(files("ferrule.models").joinpath("prices.toml").read_text()))
    assert len(table) > 80
    for name, price in table.items():
        assert price.as_of is not None, name
        assert price.source.startswith("https://"), name
        assert price.rates.cached_input <= price.rates.input <= price.rates.cache_write, name
        assert price.long_rates is None or price.long_rates.output >= price.rates.output, name


def test_a_model_in_this_process_costs_nothing(monkeypatch, tmp_path) -> None:
    table = tmp_path / "prices.toml"
    table.write_text('["local:dear"]\ninput = 2\noutput = 10\n')
    monkeypatch.setenv("FERRULE_PRICES", str(table))
    for name in ("embedded", "local:checkpoints/d20", "local"):
        price = find_price(name)
        assert price is not None
        assert (price.is_free, price.compute_cost(Usage(MILLION, 0, MILLION))) == (True, 0)
    dear = find_price("local:dear")
    assert dear is not None
    assert not dear.is_free


def test_the_model_of_the_seeds_analyses_has_its_price() -> None:
    price = find_price("groq:openai/gpt-oss-120b")
    assert price is not None
    assert (price.rates.input, price.rates.output) == (0.15, 0.6)


@pytest.mark.parametrize(
    ("name", "same_as"),
    [
        ("openai-responses:gpt-5", "openai:gpt-5"),
        ("openai:gpt-4.1-2025-04-14", "openai:gpt-4.1"),
        ("openai-responses:gpt-4.1-2025-04-14", "openai:gpt-4.1"),
        ("anthropic:claude-sonnet-4-5-20250929", "anthropic:claude-sonnet-4-5"),
    ],
)
def test_a_snapshot_and_the_other_api_have_the_models_price(name, same_as) -> None:
    assert find_price(name, on=date(2026, 11, 4)) == find_price(same_as, on=date(2026, 11, 4)) is not None


def test_a_snapshot_with_a_price_of_its_own_keeps_it() -> None:
    old, new = find_price("openai:gpt-4o-2024-05-13"), find_price("openai:gpt-4o-2024-08-06")
    assert isinstance(old, Price)
    assert isinstance(new, Price)
    assert (old.rates.input, new.rates.input) == (5, 2.5)


@pytest.mark.parametrize("name", ["openai:gpt-99", "groq:gpt-4o", "nobody:knows", "", "openai:"])
def test_an_unknown_price_is_none(name) -> None:
    assert find_price(name) is None


def test_a_price_that_ends_is_not_used_beyond_its_day() -> None:
    prices = {"m": {"input": 1, "output": 1, "until": date(2027, 1, 1)}}
    assert find_price("m", prices, on=date(2026, 12, 31)) is not None
    assert find_price("m", prices, on=date(2027, 1, 1)) is None


def test_cached_and_written_and_audio_tokens_have_their_own_prices() -> None:
    usage = Usage(
        MILLION, cached_tokens=400_000, sampled_tokens=100_000, cache_write_tokens=200_000, audio_tokens=100_000
    )
    assert cost(usage, input=1, output=10) == pytest.approx(1 + 1)
    assert cost(
        usage, input=1, output=10, cached_input=0.1, cache_write=1.25, audio_input=3
    ) == pytest.approx(0.3 + 0.04 + 0.25 + 0.3 + 1)  # fmt: skip


async def test_what_is_long_depends_on_each_request() -> None:
    fields = {"input": 1, "output": 1, "long": {"above": 1000, "input": 2, "output": 2}}

    class Long(ScriptedModel):
        name = "long"

        async def stream(self, conversation, tools, settings):
            async for event in super().stream(conversation, tools, settings):
                if isinstance(event, MessageFinished):
                    event = MessageFinished(event.message, Usage(800 if len(self.seen) == 1 else 1200), event.stop)
                yield event

    from ferrule import ToolCall, calculator

    scripted = Long(ToolCall("a", "calculator", '{"expression": "1"}'), "1")
    run = await model(scripted).chat("1?").using(calculator).run()
    assert run.usage.prompt_tokens == 2000
    assert run.cost is None
    assert run.compute_cost({"long": fields}) == pytest.approx((800 + 2 * 1200) / MILLION)


def test_ones_own_prices_come_first(monkeypatch, tmp_path) -> None:
    table = tmp_path / "prices.toml"
    table.write_text('["a:b"]\ninput = 2\ncached_input = 1\noutput = 10\n')
    monkeypatch.setenv("FERRULE_PRICES", str(table))
    found = find_price("a:b")
    assert found is not None
    assert found.compute_cost(Usage(MILLION, 500_000, 100_000)) == pytest.approx(1 + 0.5 + 1)
    assert find_price("openai:gpt-4o") is None
    configure_prices({"a:*": {"input": 3, "output": 3}, "a:bc*": {"input": 4, "output": 4}})
    names = ["a:b", "a:bcd", "b:a"]
    assert [price and price.rates.input for price in map(find_price, names)] == [3, 4, None]
    given = find_price("a:b", {"a:b": {"input": 5, "output": 5}})
    assert given is not None
    assert given.rates.input == 5
    configure_prices(table)
    assert find_price("a:bcd") is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"input": 1}, "'m' needs output: dollars per million tokens"),
        ({"input": "1", "output": 1}, "'m': input must be dollars per million tokens, not '1'"),
        ({"input": -1, "output": 1}, "must be dollars per million tokens, not -1"),
        ({"input": True, "output": 1}, "not True"),
        ({"input": 1, "output": float("nan")}, "not nan"),
        ({"input": 1, "output": 1, "cached": 1}, "the unknown field 'cached'; known are input, output, cached_input"),
        ({"input": 1, "output": 1, "date": "2026"}, "date must be a date such as 2026-01-31, not '2026'"),
        ({"input": 1, "output": 1, "source": 5}, "source must be a text"),
        ({"input": 1, "output": 1, "long": {"input": 1, "output": 1}}, "long needs above"),
        ({"input": 1, "output": 1, "long": {"above": 9, "input": 1}}, "'m, long' needs output"),
        (5, "'m' must be a table with input and output, not 5"),
    ],
)
def test_a_wrong_entry_is_named(entry, message) -> None:
    with pytest.raises(SettingsError, match=message):
        configure_prices({"m": entry})


def test_a_file_that_can_not_be_read_is_named(tmp_path) -> None:
    with pytest.raises(SettingsError, match=r"the prices in .*nowhere.toml can't be read"):
        find_price("m", tmp_path / "nowhere.toml")
