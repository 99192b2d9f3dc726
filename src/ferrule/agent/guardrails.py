"""Guardrails as hooks: a check of the question before a model is asked, and of the answer before the run ends.

    pipeline.hook(InputGuardrail(refuse_medical_advice), OutputGuardrail(find_secrets, retries=1))

A check is a function, plain or async, from a text to None if it is fine, or to a sentence that says what is wrong. It
may ask another model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from ferrule.agent.hooks import Hooks
from ferrule.agent.standard_hooks import call
from ferrule.errors import SettingsError

if TYPE_CHECKING:
    from ferrule.agent.hooks import RunState

Check: TypeAlias = Callable[[str], str | None] | Callable[[str], Awaitable[str | None]]
"""From a text to None if it is fine, or to what is wrong with it."""


class InputGuardrail(Hooks):
    """Refuses a question before a model is asked: the run stops with `reason`, and says why in `Run.stop_detail`.

    The check gets the text of the last user message, once in a run. Raises `SettingsError` if it isn't a function.
    """

    def __init__(self, check: Check, *, reason: str = "input_guardrail") -> None:
        self._check = _require_function(check)
        self._reason = reason

    async def before_request(self, state: RunState) -> None:
        """Check the question before the first request."""
        if state.rounds:
            return
        problem = await _find_problem(self._check, state.conversation.request)
        if problem is not None:
            state.stop(self._reason, problem)


class OutputGuardrail(Hooks):
    """Checks an answer: one that is refused is sent back with what is wrong, `retries` times, then the run stops.

    It then stops with `reason`, and says why in `Run.stop_detail`. The refused answers stay in the conversation, as its
    record; a stream has emitted them. Raises `SettingsError` for a check that isn't a function, or retries below 0.
    """

    def __init__(self, check: Check, *, retries: int = 1, reason: str = "output_guardrail") -> None:
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise SettingsError(f"retries of an OutputGuardrail must be a whole number, 0 or more, not {retries!r}")
        self._check = _require_function(check)
        self._retries = retries
        self._reason = reason

    async def after_message(self, state: RunState) -> None:
        """Check a complete answer without calls."""
        if state.open_calls or not state.is_complete:
            return
        problem = await _find_problem(self._check, state.run.text)
        if problem is None:
            return
        refused = state.memory.get(self, 0)
        if refused >= self._retries:
            state.stop(self._reason, problem)
        state.memory[self] = refused + 1
        state.say(problem)


def _require_function(check: Check) -> Check:
    if not callable(check):
        raise SettingsError(f"a guardrail takes a function from a text to None or a sentence, not {check!r}")
    return check


async def _find_problem(check: Check, text: str) -> str | None:
    """Return what is wrong with a text, None if nothing is. Raises `SettingsError` for any other answer."""
    problem = await call(check, text)
    if problem is not None and not isinstance(problem, str):
        name = getattr(check, "__qualname__", repr(check))
        raise SettingsError(f"the guardrail {name} must return None or a sentence, not {problem!r}")
    return problem
