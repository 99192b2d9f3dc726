"""What a gateway is made of, each by itself: the breaker, the limit and its queue, the waits, the histogram."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate
from random import Random
from threading import RLock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_time import run

from ferrule.errors import Overloaded
from ferrule.models.gateway.concurrency import AdaptiveLimit, RequestSlots
from ferrule.models.gateway.endpoint import CircuitBreaker
from ferrule.models.gateway.report import LatencyHistogram
from ferrule.models.gateway.retries import draw_backoff, parse_retry_after
from tables import each_case

STEPS = st.lists(st.tuples(st.sampled_from(["begin", "succeed", "fail", "leave"]), st.floats(0, 30), st.integers(0, 9)))


@given(STEPS)
def test_a_breaker_lets_one_request_at_a_time_decide_and_never_stays_open(steps: list) -> None:
    breaker, now, on_their_way = CircuitBreaker(failures=3, window=20, open_for=10), 0.0, []
    for step, seconds, which in steps:
        now += seconds
        if step == "begin":
            if breaker.get_state(now) != "open":
                on_their_way.append(breaker.admit(now))
        elif on_their_way:
            probe = on_their_way.pop(which % len(on_their_way))
            if step == "succeed":
                breaker.record_success(probe)
            elif step == "fail":
                breaker.record_failure(now, probe)
            else:
                breaker.record_cancellation(probe)
        assert sum(on_their_way) <= 1
        if sum(on_their_way):
            assert breaker.get_state(now) == "open"
        assert (breaker.get_state(now) == "closed") == (breaker.open_since is None)
    # Whatever has been: when all that is on its way has come back, and time has passed, a request is let through.
    for probe in on_their_way:
        breaker.record_cancellation(probe)
    assert breaker.get_state(now + 10) != "open"


def test_answers_that_begin_and_break_off_open_the_breaker() -> None:
    breaker = CircuitBreaker(failures=3, window=20, open_for=10)
    for now in range(2):
        breaker.record_beginning(probe=False)
        assert not breaker.record_failure(now, probe=False, broke_off=True)
    breaker.record_beginning(probe=False)
    assert breaker.record_failure(2, probe=False, broke_off=True)


def test_an_answer_that_begins_clears_other_failures_and_a_complete_one_all() -> None:
    breaker = CircuitBreaker(failures=2, window=20, open_for=10)
    breaker.record_failure(0, probe=False)
    breaker.record_beginning(probe=False)
    assert not breaker.record_failure(1, probe=False, broke_off=True)
    breaker.record_success(probe=False)
    assert not breaker.record_failure(2, probe=False, broke_off=True)


def test_failures_that_are_far_between_or_have_a_success_between_them_open_nothing() -> None:
    breaker = CircuitBreaker(failures=3, window=20, open_for=10)
    for now in (0, 15, 30, 45):
        assert not breaker.record_failure(now, probe=False)
    breaker.record_success(probe=False)
    assert not breaker.record_failure(46, probe=False)
    assert not breaker.record_failure(47, probe=False)
    assert breaker.record_failure(48, probe=False)
    # What began before, and comes back now, decides nothing.
    breaker.record_success(probe=False)
    assert not breaker.record_failure(49, probe=False)
    assert breaker.get_state(57.9) == "open"
    assert breaker.get_state(58) == "half open"


@given(st.integers(1, 50), st.lists(st.booleans(), max_size=200))
def test_a_limit_stays_between_one_and_the_most(most: int, outcomes: list[bool]) -> None:
    limit = AdaptiveLimit(most)
    for succeeded in outcomes:
        before = limit.value
        if succeeded:
            limit.record_success()
            assert before <= limit.value <= min(most, before + 1)
        else:
            limit.record_overload(limit.epoch)
            assert limit.value == max(1, before // 2)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["ask", "again", "free", "cancel", "halve", "grow"]))))
def test_places_are_never_more_than_the_limit_and_none_is_lost(steps: list) -> None:
    async def check() -> None:
        limit = AdaptiveLimit(3)
        slots = RequestSlots(limit, RLock())
        tasks: list[asyncio.Task[None]] = []
        held = 0
        for which, step in steps:
            if step in ("ask", "again"):
                tasks.append(asyncio.create_task(slots.acquire(4, step == "again", "gateway")))
            elif step == "cancel" and tasks:
                tasks[which % len(tasks)].cancel()
            elif step == "free" and held:
                held -= 1
                slots.release()
            elif step == "halve":
                limit.record_overload(limit.epoch)
            elif step == "grow":
                limit.record_success()
                slots.admit_waiting()
            before = slots.running
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            done = [task for task in tasks if task.done()]
            tasks = [task for task in tasks if not task.done()]
            held += sum(not task.cancelled() and task.exception() is None for task in done)
            assert slots.running == held
            assert held <= max(limit.value, before)
            assert slots.waiting == len(tasks)
            assert all(
                isinstance(task.exception(), Overloaded) for task in done if not task.cancelled() if task.exception()
            )
        while held or tasks:
            assert held, "who waits is served once the others are done"
            slots.release()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            held += sum(task.done() for task in tasks) - 1
            tasks = [task for task in tasks if not task.done()]

    run(check())


def test_a_waiter_whose_event_loop_is_gone_is_passed_over() -> None:
    slots = RequestSlots(AdaptiveLimit(1), RLock())
    asyncio.run(slots.acquire(1, False, "gateway"))
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(slots.acquire(1, False, "gateway"))
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    assert slots.waiting == 1
    slots.release()
    asyncio.run(slots.acquire(0, False, "gateway"))
    assert (slots.running, slots.waiting) == (1, 0)
    # Nobody will ever run it; asyncio would complain of it.
    waiting._log_destroy_pending = False
    waiting.get_coro().close()


@given(st.integers(1, 5000), st.floats(0.001, 100), st.floats(0.001, 100), st.integers())
def test_a_wait_lies_in_the_upper_half_of_its_interval(attempts: int, first: float, longest: float, seed: int) -> None:
    interval = min(longest, first * 2.0 ** min(attempts - 1, 60))
    assert interval / 2 <= draw_backoff(attempts, first, longest, Random(seed)) <= interval


NOW = 1_784_635_200.0  # a whole second, as in an HTTP date


@each_case(
    ("said", "seconds"),
    [
        (None, 0),
        (3, 3),
        (2.5, 2.5),
        ("120", 120),
        (" 7 ", 7),
        (-1, 0),
        ("soon", 0),
        ("", 0),
        ("nan", 0),
        ("inf", 0),
        (formatdate(NOW + 90, usegmt=True), 90),
        (formatdate(NOW - 90, usegmt=True), 0),
        (time.strftime("%A, %d-%b-%y %H:%M:%S GMT", time.gmtime(NOW + 60)), 60),
        (time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(NOW + 60)), 60),
        ("Wed, 21 Oct 99999 07:28:00 GMT", 0),
    ],
)
def test_a_retry_after_is_seconds_or_a_date_in_any_of_the_three_forms(said: object, seconds: float) -> None:
    assert parse_retry_after(said, NOW) == pytest.approx(seconds)


@given(st.text() | st.floats())
def test_whatever_a_retry_after_says_the_wait_is_a_time(said: str | float) -> None:
    assert 0 <= parse_retry_after(said, NOW) < float("inf")


@given(st.lists(st.floats(1e-4, 10_000), min_size=1), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_quantile_is_within_a_twentieth_of_the_true_one(seconds: list[float], share: float) -> None:
    histogram = LatencyHistogram()
    for each in seconds:
        histogram.add(each)
    true = next(value for rank, value in enumerate(sorted(seconds), 1) if rank >= share * len(seconds))
    assert histogram.compute_quantile(share) == pytest.approx(true, rel=0.05)


def test_a_histogram_stays_small_whatever_it_counts() -> None:
    histogram = LatencyHistogram()
    random = Random(3)
    for _ in range(20_000):
        histogram.add(10 ** random.uniform(-9, 9))
    histogram.add(0)
    histogram.add(-1)
    assert histogram.summarize().count == 20_002
    assert len(histogram._counts) <= 216
