"""A gateway under load: many conversations at once, and several event loops."""

from __future__ import annotations

import asyncio
import gc
import sys
from random import Random
from threading import Lock, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from providers import Provider, failure_of, fault, read
from virtual_time import run

from ferrule.errors import Overloaded, ProviderError
from ferrule.models.gateway import Gateway, GatewaySettings

STEPS = st.one_of(
    st.sampled_from([0.0, 1.0, 15.0, 70.0]),
    st.builds(fault, st.sampled_from(["overloaded", "failed", "refused", "bad"]), retry_after=st.none() | st.just(3)),
    st.just(KeyError("not the provider's")),
)
CHUNKS = st.sampled_from(["a", "b"])
SCRIPTS = st.lists(st.tuples(st.lists(STEPS, max_size=3), st.lists(CHUNKS | STEPS, max_size=4)), min_size=1, max_size=3)


@given(
    st.lists(st.tuples(SCRIPTS, st.sampled_from([0.0, 0.5, 3.0]), st.sampled_from([None, 0.0, 1.0, 20.0]))),
    st.integers(),
)
def test_whatever_providers_and_readers_do_each_request_ends_once_and_nothing_is_left(asked: list, seed: int) -> None:
    async def check() -> None:
        settings = GatewaySettings(concurrency=3, waiting=4, attempts=3, breaker_failures=3, breaker_open=10)
        gateway = Gateway("provider http://localhost/v1 aa", settings, Random(seed))
        providers, tasks = [], []
        for scripts, before, cancelled_after in asked:
            await asyncio.sleep(before)
            providers.append(Provider(*([*taking, ..., *giving] for taking, giving in scripts)))
            tasks.append(asyncio.create_task(read(gateway, providers[-1])))
            if cancelled_after is not None:
                asyncio.get_running_loop().call_later(cancelled_after, tasks[-1].cancel)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        kinds = list | ProviderError | Overloaded | KeyError | asyncio.CancelledError
        assert [outcome for outcome in outcomes if not isinstance(outcome, kinds)] == []
        report = gateway.report()
        assert (report.running, report.waiting) == (0, 0)
        assert sum(provider.running for provider in providers) == 0
        assert report.attempts == sum(len(provider.began) for provider in providers)
        assert report.attempts == report.finished + sum(report.failures.values()) + report.given_up
        assert report.finished == sum(isinstance(outcome, list) for outcome in outcomes)
        assert report.retries <= report.attempts
        # Whatever has happened, a while later a provider that is well is served again.
        await asyncio.sleep(60)
        assert await read(gateway, Provider(["a"])) == ["a"]

    run(check())


@pytest.mark.parametrize(
    ("conversations", "concurrency"),
    [
        (200, 200),
        (200, 10),
        pytest.param(1000, 1000, marks=pytest.mark.slow),
        pytest.param(1000, 40, marks=pytest.mark.slow),
    ],
)
def test_many_conversations_lose_nothing_and_leave_nothing(conversations: int, concurrency: int) -> None:
    async def check() -> None:
        # Every seventh attempt is turned away at first, and one breaks.
        random = Random(11)
        settings = GatewaySettings(concurrency=concurrency, attempts=20, total_time=1e6, breaker_failures=50)
        gateway = Gateway("provider http://localhost/v1 aa", settings, random)
        most = 0

        async def start():
            if random.random() < 0.02:
                raise fault("overloaded", retry_after=random.choice([None, 1]))
            if random.random() < 0.02:
                raise fault("failed")
            return chunks()

        async def chunks():
            nonlocal most
            most = max(most, gateway.report().running)
            for number in range(4):
                await asyncio.sleep(random.uniform(0.1, 2))
                yield str(number)

        async def converse() -> int:
            whole = ["0", "1", "2", "3"]
            return sum([[chunk async for chunk in gateway.stream(start, failure_of)] == whole for _ in range(2)])

        held = []
        for _ in range(3):
            assert await asyncio.gather(*(converse() for _ in range(conversations))) == [2] * conversations
            gc.collect()
            held.append(sys.getallocatedblocks())
        report = gateway.report()
        assert (report.running, report.waiting, report.finished) == (0, 0, 6 * conversations)
        assert report.retries == report.failures["overloaded"] + report.failures["failed"]
        assert most <= concurrency
        # What the first of them left (caches, the histogram) is all there is.
        assert held[2] - held[1] < conversations

    run(check())


def test_several_event_loops_share_one_limit() -> None:
    gateway = Gateway("provider http://localhost/v1 aa", GatewaySettings(concurrency=3))
    lock, running, most, answers = Lock(), 0, 0, []

    async def chunks():
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        for number in range(3):
            await asyncio.sleep(0)
            yield str(number)
        with lock:
            running -= 1

    async def start():
        return chunks()

    async def ask() -> None:
        answers.append([chunk async for chunk in gateway.stream(start, failure_of)])

    async def many() -> None:
        await asyncio.gather(*(ask() for _ in range(100)))

    threads = [Thread(target=asyncio.run, args=(many(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == [["0", "1", "2"]] * 400
    assert most <= 3
    assert (gateway.report().running, gateway.report().waiting, gateway.report().finished) == (0, 0, 400)


def test_a_loop_that_ends_gives_its_places_back() -> None:
    gateway = Gateway("provider http://localhost/v1 aa", GatewaySettings(concurrency=1))

    async def begin() -> str:
        # Left in the middle, as by a reader that was interrupted.
        stream = gateway.stream(Provider(["a", "b"]).start, failure_of)
        return await anext(stream)

    assert run(begin()) == "a"
    assert run(read(gateway, Provider(["c"]))) == ["c"]
