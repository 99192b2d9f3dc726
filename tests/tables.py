"""Tables of cases that are one test, which goes through all of them and names each that fails.

`pytest.mark.parametrize` makes a test of each case. To collect, set up and report a test takes about 2 ms of processor
time, more than most cases of a table take themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest


def each_case(
    names: str | Sequence[str], cases: Iterable[Any], *, ids: Iterable[str] | Callable[[Any], str] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run a test on each case, with the arguments of `pytest.mark.parametrize`, but as one test.

    All cases run, and those that fail are raised together, each with a note of its name. Fixtures are made once: only
    tests that change none of what they share can be written so.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [tuple(case) if len(keys) > 1 else (case,) for case in cases]
    labels = list(_label(rows, ids))

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            failures = Failures()
            for label, row in zip(labels, rows, strict=True):
                with failures.collect(label):
                    test(**dict(zip(keys, row, strict=True)), **fixtures)
            failures.check()

        @wraps(test)
        async def run_async(**fixtures: Any) -> None:
            failures = Failures()
            for label, row in zip(labels, rows, strict=True):
                with failures.collect(label):
                    await test(**dict(zip(keys, row, strict=True)), **fixtures)
            failures.check()

        wrapper: Callable[..., Awaitable[None] | None] = run_async if inspect.iscoroutinefunction(test) else run
        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        assert len(kept) + len(keys) == len(signature.parameters), f"{test.__name__} takes not all of {names}"
        wrapper.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return wrapper

    return decorate


class Failures:
    """The failures of the cases of one test."""

    def __init__(self) -> None:
        self._failures: list[BaseException] = []
        self._count = 0

    @contextmanager
    def collect(self, label: str) -> Iterator[None]:
        """Keep the failure of a case, with its name; a test that ran out of its time ends."""
        self._count += 1
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:
            if "pytest-timeout" in str(error):
                raise
            error.add_note(f"case: {label}")
            self._failures.append(error)

    def check(self) -> None:
        """Raise the failures together, if there are any; a table without cases is one, too."""
        assert self._count, "the table has no cases"
        if self._failures:
            raise BaseExceptionGroup(f"{len(self._failures)} of {self._count} cases fail", self._failures)


def _label(rows: list[tuple[Any, ...]], ids: Iterable[str] | Callable[[Any], str] | None) -> Iterator[str]:
    if ids is None or callable(ids):
        name = ids or ascii
        yield from (", ".join(str(name(value))[:200] for value in row) for row in rows)
    else:
        yield from ids
