"""A gateway: what it tries again, what it gives up and in which words, and who waits meanwhile."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate
from random import Random

import pytest
from providers import Provider, failure_of, fault, pour, read
from virtual_time import now, run

from ferrule.errors import Overloaded, ProviderError, StreamBroken
from ferrule.models.gateway import Gateway, GatewaySettings, configure, get_gateway
from ferrule.models.gateway.retries import draw_backoff


def make_gateway(**settings) -> Gateway:
    return Gateway("provider http://localhost/v1 0a1b2c", GatewaySettings(**settings), Random(7))


def test_what_failed_is_tried_again_after_growing_jittered_waits() -> None:
    async def check() -> None:
        provider = Provider([fault("failed"), ...], [fault("overloaded"), ...], [..., fault("failed")], ["a", "b"])
        assert await read(make_gateway(), provider) == ["a", "b"]
        random = Random(7)
        waits = [draw_backoff(attempts, 0.5, 30, random) for attempts in (1, 2, 3)]
        assert provider.began == pytest.approx([0, waits[0], sum(waits[:2]), sum(waits)])
        assert waits == sorted(waits)

    run(check())


@pytest.mark.parametrize(("kind", "status"), [("refused", 401), ("bad", 400)])
def test_what_is_refused_is_not_tried_again(kind: str, status: int) -> None:
    async def check() -> None:
        provider = Provider([fault(kind, "no such key: set PROVIDER_API_KEY", status), ...])
        with pytest.raises(ProviderError, match=r"^no such key: set PROVIDER_API_KEY$") as raised:
            await read(make_gateway(), provider)
        assert raised.value.status == status
        assert len(provider.began) == 1

    run(check())


def test_the_last_failure_says_how_often_it_was_tried_and_what_the_provider_said() -> None:
    async def check() -> None:
        provider = Provider([fault("overloaded", "provider: too many customers", 429), ...])
        with pytest.raises(
            ProviderError, match=r"^provider: too many customers \(3 attempts in \d\.\d s; at most 3"
        ) as e:
            await read(make_gateway(attempts=3), provider)
        assert e.value.status == 429
        assert len(provider.began) == 3
        assert isinstance(e.value.__cause__, Exception)

    run(check())


def test_no_attempt_begins_after_the_total_time() -> None:
    async def check() -> None:
        provider = Provider([20.0, fault("failed"), ...])
        settings = {"attempts": 9, "total_time": 50, "timeouts": {"connect": 60}}
        with pytest.raises(ProviderError, match=r"3 attempts in 6\d\.\d s; the next would be .* beyond the 50 s"):
            await read(make_gateway(**settings), provider)
        assert provider.began[-1] < 50

    run(check())


def test_an_exception_that_is_not_the_providers_goes_through() -> None:
    async def check() -> None:
        gateway = make_gateway()
        with pytest.raises(ZeroDivisionError):
            await read(gateway, Provider([ZeroDivisionError(), ...]))
        with pytest.raises(ZeroDivisionError):
            await read(gateway, Provider(["a", ZeroDivisionError()]))
        assert (gateway.report().given_up, gateway.report().running) == (2, 0)

    run(check())


def test_nothing_is_tried_again_once_a_chunk_was_passed_on() -> None:
    async def check() -> None:
        gateway, provider, chunks = make_gateway(), Provider(["a", fault("failed", "the line is dead", 502)]), []
        with pytest.raises(StreamBroken, match="the line is dead") as raised:
            await pour(gateway.stream(provider.start, failure_of), chunks.append)
        assert chunks == ["a"]
        assert len(provider.began) == 1
        assert raised.value.status == 502
        assert gateway.report().failures == {"broken": 1}

    run(check())


@pytest.mark.parametrize("as_date", [False, True])
def test_a_retry_after_makes_all_requests_wait(as_date: bool) -> None:
    async def check() -> None:
        gateway = make_gateway()
        said = formatdate(time.time() + 160, usegmt=True) if as_date else 160
        provider, other = Provider([fault("overloaded", retry_after=said), ...], ["a"]), Provider(["b"])
        asked = asyncio.create_task(read(gateway, provider))
        await asyncio.sleep(0.01)
        assert 100 < gateway.report().paused <= 160
        assert await read(gateway, other) == ["b"]
        assert await asked == ["a"]
        # Virtual time stands still while real time passes, and a date has whole seconds.
        assert [first for first in (provider.began[1], other.began[0]) if not 100 < first <= 160.01] == []

    run(check())


def test_a_pause_that_is_asked_for_meanwhile_is_kept_as_well() -> None:
    async def check() -> None:
        gateway = make_gateway()
        slow = Provider([5.0, fault("overloaded", retry_after=20), ...], [])
        quick = Provider([fault("overloaded", retry_after=10), ...], [])
        await asyncio.gather(read(gateway, slow), read(gateway, quick))
        assert quick.began == pytest.approx([0, 25])

    run(check())


def test_a_pause_that_is_longer_than_a_request_may_take_fails_at_once() -> None:
    async def check() -> None:
        gateway, provider = (
            make_gateway(total_time=60),
            Provider([fault("overloaded", "come tomorrow", 429, "600"), ...], ["a"]),
        )
        with pytest.raises(ProviderError, match=r"come tomorrow \(1 attempt .* would be 600\.0 s later"):
            await read(gateway, provider)
        with pytest.raises(ProviderError, match=r"pause of which 600 s are left.*come tomorrow") as raised:
            await read(gateway, provider)
        assert raised.value.status == 429
        assert now() == 0
        await asyncio.sleep(550)
        assert await read(gateway, provider) == ["a"]
        assert now() == pytest.approx(600)

    run(check())


def test_only_a_request_that_could_be_tried_again_makes_others_wait() -> None:
    async def check() -> None:
        gateway = make_gateway()
        with pytest.raises(ProviderError):
            await read(gateway, Provider([fault("bad", retry_after=30), ...]))
        assert gateway.report().paused == 0

    run(check())


def test_a_pause_has_a_longest_length() -> None:
    async def check() -> None:
        provider = Provider([fault("overloaded", retry_after=1e9), ...], ["a"])
        assert await read(make_gateway(longest_pause=50), provider) == ["a"]
        assert provider.began == pytest.approx([0, 50])

    run(check())


def test_a_crowd_that_is_turned_away_halves_the_limit_once_and_successes_raise_it() -> None:
    async def check() -> None:
        gateway = make_gateway(concurrency=8, attempts=1)
        turned_away, well = Provider([1.0, fault("overloaded"), ...]), Provider(["a"])
        await asyncio.gather(*(read(gateway, turned_away) for _ in range(8)), return_exceptions=True)
        assert gateway.report().concurrency == 4
        for _ in range(4):
            await read(gateway, well)
        assert gateway.report().concurrency == 5
        for _ in range(100):
            await read(gateway, well)
        assert gateway.report().concurrency == 8

    run(check())


def test_beyond_the_places_of_the_queue_a_request_is_refused_at_once_with_the_figures() -> None:
    async def check() -> None:
        gateway, provider = make_gateway(concurrency=2, waiting=3), Provider([1.0, "a"])
        asked = [asyncio.create_task(read(gateway, provider)) for _ in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match=r"localhost/v1: 2 requests run \(at most 2 .* and 3 wait \(at most 3\)"):
            await read(gateway, provider)
        assert await asyncio.gather(*asked) == [["a"]] * 5
        assert provider.most_running == 2
        assert provider.began == [0, 0, 1, 1, 2]
        assert gateway.report().not_sent == 1

    run(check())


def test_first_come_first_served_and_who_tries_again_came_first() -> None:
    async def check() -> None:
        gateway, order = make_gateway(concurrency=1, first_delay=0.2), []

        async def ask(name: str, provider: Provider) -> None:
            await pour(gateway.stream(provider.start, failure_of), lambda _: order.append(name))

        again = Provider([fault("failed"), ...], ["x"])
        names = ["again", "first", "second", "third"]
        providers = [again, *(Provider(["x", 1.0]) for _ in names[1:])]
        await asyncio.gather(*map(ask, names, providers))
        assert order == ["first", "again", "second", "third"]

    run(check())


def test_a_waiter_that_is_cancelled_frees_its_place_also_when_it_was_just_called() -> None:
    async def check() -> None:
        gateway, provider = make_gateway(concurrency=1, waiting=2), Provider([1.0, "a"])
        running, gone, called = (asyncio.create_task(read(gateway, provider)) for _ in range(3))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        last = asyncio.create_task(read(gateway, provider))
        await asyncio.sleep(0)
        assert gateway.report().waiting == 2
        # The place goes to the next in line in the same step in which that one is cancelled.
        running.add_done_callback(lambda _: called.cancel())
        assert await last == ["a"]
        assert called.cancelled()
        assert (gateway.report().running, gateway.report().waiting) == (0, 0)

    run(check())


def test_a_provider_that_keeps_failing_is_left_alone_until_one_request_got_through() -> None:
    async def check() -> None:
        gateway = make_gateway(attempts=2, breaker_failures=4, breaker_open=30)
        broken, well = Provider([fault("failed", "the gateway burns"), ...]), Provider([1.0, "a"])
        for _ in range(2):
            with pytest.raises(ProviderError, match="2 attempts"):
                await read(gateway, broken)
        began = now()
        await asyncio.sleep(10)
        with pytest.raises(ProviderError, match=r"breaker is open since 10 s.* through in 20 s.*the gateway burns"):
            await read(gateway, well)
        assert well.began == []
        await asyncio.sleep(21)
        assert gateway.report().breaker == "half open"
        probe = asyncio.create_task(read(gateway, well))
        await asyncio.sleep(0)
        with pytest.raises(ProviderError, match="one request is probing it now"):
            await read(gateway, well)
        assert await probe == ["a"]
        assert well.began == pytest.approx([began + 31])
        assert gateway.report().breaker == "closed"

    run(check())


def test_a_probe_that_fails_opens_the_breaker_again_and_one_that_is_cancelled_leaves_it_to_another() -> None:
    async def check() -> None:
        gateway = make_gateway(attempts=1, breaker_failures=1, breaker_open=10)
        for _ in range(2):
            with pytest.raises(ProviderError, match="out of order"):
                await read(gateway, Provider([fault("failed"), ...]))
            assert gateway.report().breaker == "open"
            await asyncio.sleep(10)
        probe = asyncio.create_task(read(gateway, Provider([5.0, "a"])))
        await asyncio.sleep(1)
        probe.cancel()
        await asyncio.wait([probe])
        assert await read(gateway, Provider(["a"])) == ["a"]

    run(check())


def test_a_probe_that_was_answered_decides_nothing_later_on() -> None:
    async def check() -> None:
        gateway = make_gateway(attempts=1, breaker_failures=1, breaker_open=10)
        broken = Provider([fault("failed"), ...])
        with pytest.raises(ProviderError):
            await read(gateway, broken)
        await asyncio.sleep(10)
        probe = asyncio.create_task(read(gateway, Provider(["a", 5.0, "b"])))
        await asyncio.sleep(1)
        assert gateway.report().breaker == "closed"
        with pytest.raises(ProviderError):
            await read(gateway, broken)
        assert await probe == ["a", "b"]
        assert gateway.report().breaker == "open"

    run(check())


def test_who_is_turned_away_says_nothing_of_a_breaker() -> None:
    async def check() -> None:
        gateway = make_gateway(attempts=1, breaker_failures=2)
        for kind in ("overloaded", "bad", "refused") * 2:
            with pytest.raises(ProviderError):
                await read(gateway, Provider([fault(kind), ...]))
        assert gateway.report().breaker == "closed"

    run(check())


def test_requests_are_spaced_by_the_rate() -> None:
    async def check() -> None:
        gateway, provider = make_gateway(requests_per_minute=30), Provider(["a"])
        await asyncio.gather(*(read(gateway, provider) for _ in range(4)))
        assert provider.began == pytest.approx([0, 2, 4, 6])

    run(check())


def test_a_report_counts_and_times_what_was_sent() -> None:
    async def check() -> None:
        gateway = make_gateway(concurrency=3)
        for provider in (Provider([fault("overloaded"), ...], [2.0, "a", 8.0, "b"]), Provider([2.0, "a", 8.0, "b"])):
            await read(gateway, provider)
        report = gateway.report()
        assert report.name == "provider http://localhost/v1"
        assert (report.requests, report.attempts, report.retries, report.finished) == (2, 3, 1, 2)
        assert report.failures == {"overloaded": 1}
        assert (report.concurrency, report.running, report.waiting, report.breaker) == (2, 0, 0, "closed")
        assert report.first_chunk.p99 == pytest.approx(2, rel=0.05)
        assert report.last_chunk.p50 == pytest.approx(10, rel=0.05)

    run(check())
    assert make_gateway().report().first_chunk.p50 is None


def test_there_is_one_gateway_for_a_key_and_settings_reach_it_by_its_address() -> None:
    one = get_gateway("provider http://10.0.0.1/v1 aa")
    assert get_gateway("provider http://10.0.0.1/v1 aa") is one
    assert get_gateway("provider http://10.0.0.1/v1 bb") is not one
    configure("http://10.0.0.1", GatewaySettings(concurrency=5))
    configure("provider http://10.0.0.1/v2", GatewaySettings(concurrency=6))
    configure("http://10.0.0.1/", GatewaySettings(concurrency=7))
    assert one.settings.concurrency == one.report().concurrency == 7
    assert get_gateway("provider http://10.0.0.1/v2 aa").settings.concurrency == 6
    assert get_gateway("provider http://10.0.0.2/v1 aa").settings == GatewaySettings()
    assert get_gateway("provider http://10.0.0.1/v1 aa", GatewaySettings(attempts=2)).settings.attempts == 2
    assert one.settings.attempts == 2


def test_who_waits_is_let_in_when_the_limit_is_raised() -> None:
    async def check() -> None:
        gateway, provider = make_gateway(concurrency=1), Provider([1.0, "a"])
        asked = [asyncio.create_task(read(gateway, provider)) for _ in range(3)]
        await asyncio.sleep(0)
        gateway.settings = GatewaySettings(concurrency=3)
        await asyncio.gather(*asked)
        assert provider.began == [0, 0, 0]

    run(check())
