"""How long a gateway waits for a provider, and that whatever ends a request closes it and frees its place."""

from __future__ import annotations

import asyncio
import gc
import math
from contextlib import aclosing, suppress
from random import Random

import pytest
from providers import Provider, failure_of, pour, read
from virtual_time import now, run

from ferrule.errors import ProviderError, StreamBroken
from ferrule.models.gateway import NOT_YET, Gateway, GatewaySettings, Timeouts


def make_gateway(**settings) -> Gateway:
    return Gateway("provider http://localhost/v1 0a1b2c", GatewaySettings(**settings), Random(7))


def at_rest(gateway: Gateway) -> bool:
    report = gateway.report()
    return (report.running, report.waiting) == (0, 0)


@pytest.mark.parametrize(
    ("script", "words", "limit"),
    [([121.0, ...], "no answer within 120 s", 120), ([..., 121.0, "a"], "no first chunk within 120 s", 120)],
)
def test_a_request_that_is_not_answered_in_time_is_tried_again(script: list, words: str, limit: int) -> None:
    async def check() -> None:
        gateway = make_gateway(attempts=2)
        late = Provider(script, ["a"])
        assert await read(gateway, late) == ["a"]
        assert limit < late.began[1] < limit + 1
        limit_name = r"\(`timeouts.\w+` of ferrule.models.gateway.configure\)"
        with pytest.raises(
            ProviderError, match=rf"^provider http://localhost/v1: {words} {limit_name} \(2 attempts"
        ) as raised:
            await read(gateway, Provider(script))
        assert raised.value.status is None
        assert asyncio.current_task().cancelling() == 0
        assert gateway.report().failures == {"failed": 3}
        assert late.running == 0
        assert at_rest(gateway)

    run(check())


def test_silence_in_the_middle_breaks_the_stream() -> None:
    async def check() -> None:
        gateway, provider, chunks = make_gateway(), Provider(["a", 59.0, "b", 59.0, "c", 61.0, "d"]), []
        with pytest.raises(StreamBroken, match="nothing more within 60 s"):
            await pour(gateway.stream(provider.start, failure_of), chunks.append)
        assert chunks == ["a", "b", "c"]
        assert now() == pytest.approx(59 + 59 + 60)
        assert provider.running == 0
        assert at_rest(gateway)

    run(check())


def test_an_answer_that_has_begun_may_take_as_long_as_it_is_not_silent_and_is_tried_again() -> None:
    async def check() -> None:
        gateway = make_gateway()
        assert await read(gateway, Provider([NOT_YET, 59.0, NOT_YET, 59.0, NOT_YET, 59.0, "a"])) == ["a"]
        assert now() == pytest.approx(177)
        silent = Provider([NOT_YET, 61.0, "a"], [NOT_YET, "b"])
        assert await read(gateway, silent) == ["b"]
        assert len(silent.began) == 2
        assert at_rest(gateway)

    run(check())


def test_a_reader_may_take_its_time_and_read_each_chunk_in_a_task_of_its_own() -> None:
    async def check() -> None:
        gateway, provider, chunks = make_gateway(), Provider(["a", 30.0, "b", 90.0, "c"]), []
        async with aclosing(gateway.stream(provider.start, failure_of)) as stream:
            for _ in range(2):
                chunks.append(await asyncio.create_task(anext(stream)))
                await asyncio.sleep(500)
            with pytest.raises(StreamBroken, match="nothing more within 60 s"):
                await asyncio.create_task(anext(stream))
        assert chunks == ["a", "b"]
        assert now() == pytest.approx(1090)

    run(check())


def test_a_limit_may_be_none() -> None:
    async def check() -> None:
        timeouts = Timeouts(connect=math.inf, first=math.inf, silence=math.inf)
        assert await read(make_gateway(timeouts=timeouts), Provider([1e6, ..., 1e6, "a", 1e6, "b"])) == ["a", "b"]

    run(check())


@pytest.mark.parametrize("after", [0.5, 1.5, 2.5, 3.5])
def test_a_cancellation_at_any_point_closes_the_request_and_goes_through(after: float) -> None:
    async def check() -> None:
        gateway, provider = make_gateway(), Provider([1.0, ..., 1.0, "a", 1.0, "b", 1.0])
        asked = asyncio.create_task(read(gateway, provider))
        await asyncio.sleep(after)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert provider.running == 0
        assert at_rest(gateway)
        assert gateway.report().given_up == 1

    run(check())


def test_a_cancellation_is_not_taken_for_a_limit_that_ends_in_the_same_moment() -> None:
    async def check() -> None:
        gateway = make_gateway(timeouts={"connect": 10})
        provider = Provider([100.0, ...])
        asked = asyncio.create_task(read(gateway, provider))
        asyncio.get_running_loop().call_later(10, asked.cancel)
        await asyncio.wait([asked])
        assert asked.cancelled()
        assert len(provider.began) == 1
        assert at_rest(gateway)

    run(check())


def test_a_provider_that_ignores_its_cancellation_is_left_all_the_same() -> None:
    async def stubborn():
        yield "a"
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1000)
        yield "b"

    async def start():
        return stubborn()

    async def check() -> None:
        gateway, chunks = make_gateway(), []
        with pytest.raises(StreamBroken, match="nothing more within 60 s"):
            await pour(gateway.stream(start, failure_of), chunks.append)
        assert chunks == ["a"]
        assert asyncio.current_task().cancelling() == 0
        assert at_rest(gateway)

    run(check())


def test_a_reader_that_leaves_or_fails_closes_the_request() -> None:
    async def fails(gateway: Gateway, provider: Provider) -> None:
        async with aclosing(gateway.stream(provider.start, failure_of)) as stream:
            async for _ in stream:
                raise KeyError

    async def check() -> None:
        gateway, provider = make_gateway(), Provider(["a", "b"])
        with pytest.raises(KeyError):
            await fails(gateway, provider)
        assert provider.running == 0
        assert at_rest(gateway)
        # Without `aclosing`, the event loop closes what nobody holds any more.
        async for _ in gateway.stream(provider.start, failure_of):
            break
        gc.collect()
        await asyncio.sleep(0.01)
        assert provider.running == 0
        assert at_rest(gateway)
        assert gateway.report().given_up == 2

    run(check())


class SDKStream:
    """As SDKs have it: the stream and its iterator are two things."""

    def __init__(self, closed: list[str], error: Exception | None = None) -> None:
        self.closed = closed
        self.error = error

    async def __aiter__(self):
        try:
            yield "a"
            yield "b"
        finally:
            self.closed.append("iterator")

    async def close(self) -> None:
        self.closed.append("stream")
        if self.error:
            raise self.error


class PlainStream(SDKStream):
    def close(self) -> None:
        self.closed.append("stream")


@pytest.mark.parametrize("kind", [SDKStream, PlainStream])
@pytest.mark.parametrize("chunks", [1, 2])
def test_both_the_stream_and_its_iterator_are_closed(kind: type[SDKStream], chunks: int) -> None:
    async def check() -> None:
        closed: list[str] = []

        async def start():
            return kind(closed)

        async with aclosing(make_gateway().stream(start, failure_of)) as stream:
            for _ in range(chunks):
                await anext(stream)
        assert closed == ["iterator", "stream"]

    run(check())


def test_a_stream_that_cannot_be_closed_changes_nothing() -> None:
    async def check() -> None:
        async def start():
            return SDKStream([], OSError("already gone"))

        gateway = make_gateway()
        assert [chunk async for chunk in gateway.stream(start, failure_of)] == ["a", "b"]
        assert gateway.report().finished == 1
        assert at_rest(gateway)

    run(check())


def test_a_cancellation_while_it_is_closed_closes_the_rest_as_well() -> None:
    class Slow(SDKStream):
        async def __aiter__(self):
            try:
                yield "a"
            finally:
                await asyncio.sleep(5)

    async def check() -> None:
        gateway, closed = make_gateway(), []

        async def start():
            return Slow(closed)

        asked = asyncio.create_task(pour(gateway.stream(start, failure_of), closed.append))
        await asyncio.sleep(1)
        asked.cancel()
        await asyncio.wait([asked])
        assert closed == ["a", "stream"]
        assert at_rest(gateway)

    run(check())


def test_an_answer_without_chunks_is_an_answer() -> None:
    async def check() -> None:
        gateway = make_gateway()
        assert await read(gateway, Provider([])) == []
        assert gateway.report().finished == 1
        assert gateway.report().first_chunk.count == 0

    run(check())
