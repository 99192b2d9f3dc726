"""What an analysis has used of its limits: requests to models, dollars and seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ferrule._util.pluralize import pluralize
from ferrule.errors import FerruleError, SettingsError, choose_advice
from ferrule.events import NO_USAGE, Usage
from ferrule.models.prices import VARIABLE, find_price

LAST_STAGES = ("synthesis", "focused_answer")
"""The stages that write the answer. The last requests, and a part of the cost and the time, are kept for them."""
_KEPT_SHARE = 0.1


class LimitReached(FerruleError):  # noqa: N818 - a state
    """A limit of the analysis is reached; `limit` is `calls`, `cost` or `seconds`."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message)
        self.limit = limit


def _describe_limit(calls: int, kept: int) -> str:
    keeps = f"; the last {kept} are kept for the answer" if kept else ""
    return f"the limit of {pluralize(calls, 'request')} to models was reached{keeps}"


def list_free_models(models: Iterable[str], prices: Mapping[str, Any]) -> list[str]:
    """Those of the models that cost nothing, so that a limit on the cost limits nothing of them."""
    found = {name: find_price(name, prices) for name in models}
    return [name for name, price in found.items() if price is not None and price.is_free]


def _advise(model: str) -> str:
    """How a price is given."""
    return choose_advice(
        f"set it with configure_prices({{{model!r}: {{'input': 1.0, 'output': 4.0}}}}) of ferrule.models.prices, in "
        "dollars for a million tokens, or give max_calls instead",
        f"give it by --price {model}=1.0/4.0 (dollars for a million tokens read and written; 0/0 if it costs nothing), "
        f"in a file that `prices` in the configuration or {VARIABLE} names, or give --max-calls instead",
    )


@dataclass(frozen=True, slots=True)
class Spending:
    """What was used: of a whole analysis, or of one of its tasks."""

    calls: int = 0
    """Requests to models."""
    usage: Usage = NO_USAGE
    """Tokens read and written."""
    cost: float | None = 0.0
    """US dollars; None if the price of a model isn't known."""
    seconds: float = 0.0
    """Wall time, without what a person took to approve the plan."""

    def __add__(self, other: Spending) -> Spending:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Spending(self.calls + other.calls, self.usage + other.usage, cost, self.seconds + other.seconds)


@dataclass(slots=True)
class AnalysisLimits:
    """Counts requests, their cost and the time, and refuses a request beyond a limit. None is no limit."""

    calls: int | None = None
    cost: float | None = None
    seconds: float | None = None
    clock: Callable[[], float] = time.monotonic
    prices: Mapping[str, Any] = field(default_factory=dict)
    """Recorded prices, which count before those of now."""
    _started: float = field(init=False)
    _total: Spending = Spending()
    _dearest: float = 0.0
    _tasks: dict[str, Spending] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._started = self.clock()

    def check_prices(self, models: Iterable[str]) -> None:
        """Raise `SettingsError` if the cost is limited and the price of one of the models isn't known."""
        for name in models:
            if self.cost is not None and find_price(name, self.prices) is None:
                raise SettingsError(f"max_cost can't be kept: the price of {name} isn't known; {_advise(name)}")

    def count_request(self, task: str, stage: str) -> None:
        """Count one more request. Raises `LimitReached` if it isn't allowed."""
        self.check(stage)
        self._count(task, Spending(calls=1))

    def check(self, stage: str = "") -> None:
        """Raise `LimitReached` if this stage may ask no more. The last requests are kept for the answer."""
        spent, kept = self._total, 0 if stage in LAST_STAGES else len(LAST_STAGES)
        if self.calls is not None:
            calls = kept if self.calls > 2 * kept else 0
            if spent.calls >= self.calls - calls:
                raise LimitReached("calls", _describe_limit(self.calls, calls))
        if self.cost is not None:
            reserve = self._reserve if kept else 0.0
            if (spent.cost or 0.0) >= self.cost - reserve:
                keeps = f"; ${reserve:.2g} of it is kept for the answer" if reserve else ""
                raise LimitReached("cost", f"the limit of ${self.cost:g} was reached{keeps}")
        left = self.find_seconds_left(stage)
        if left is not None and left <= 0:
            raise LimitReached("seconds", f"the limit of {self.seconds:g} seconds was reached")

    def count_usage(self, task: str, usage: Usage, cost: float | None) -> None:
        """Count the tokens of a request, and the dollars that they cost, None if that isn't known."""
        self._dearest = max(self._dearest, cost or 0.0)
        self._count(task, Spending(usage=usage, cost=cost))

    @property
    def _reserve(self) -> float:
        """Dollars that are kept for the answer: what as many of the dearest requests so far cost, at least a tenth."""
        limit, requests = self.cost or 0.0, len(LAST_STAGES) * self._dearest
        return max(_KEPT_SHARE * limit, requests if limit > 2 * requests else 0.0)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A block whose time isn't counted, as while a person is asked."""
        begun = self.clock()
        try:
            yield
        finally:
            self._started += self.clock() - begun

    @property
    def elapsed(self) -> float:
        """Seconds since the analysis began, without those in which it was paused."""
        return self.clock() - self._started

    def find_seconds_left(self, stage: str = "") -> float | None:
        """Seconds that this stage may take until the limit, negative after it; None if there is none."""
        if self.seconds is None:
            return None
        return self.seconds * (1 if stage in LAST_STAGES else 1 - _KEPT_SHARE) - self.elapsed

    def sum_up(self, task: str | None = None) -> Spending:
        """What the analysis used so far, or one of its tasks."""
        if task is None:
            return replace(self._total, seconds=self.elapsed)
        return self._tasks.get(task, Spending())

    def _count(self, task: str, spent: Spending) -> None:
        self._total += spent
        self._tasks[task] = self._tasks.get(task, Spending()) + spent
