"""Arguments that can't be meant are refused at once, and the message says what to give instead."""

from collections.abc import Callable
from typing import Any

import pytest

from ferrule import Rule, model
from ferrule.errors import PolicyError, SettingsError
from ferrule.execution import TerminalApprover
from ferrule.models.prices import configure_prices
from ferrule.models.scripted import ScriptedModel

ECHO = model("echo").chat("?")


def plain(state: object) -> object:
    return state


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: ECHO.parse_as("int"), "parse_as can't use the text 'int'"),
    (lambda: ECHO.parse_as(lambda x: x), "parse_as can't use the function"),
    (lambda: ECHO.parse_as(int, retries=-1), "retries must be a whole number, 0 or more, not -1"),
    (lambda: model(None), "takes a name such as 'openai:gpt-5' or a Model object, not None"),  # type: ignore[arg-type]
    (lambda: model(ScriptedModel), "takes a name .* or a Model object, not <class"),  # type: ignore[arg-type]
    (lambda: ECHO.run_many_sync(-1), "number of runs, 0 or more, not -1"),
    (lambda: ECHO.run_many_sync(1, errors="ignore"), "errors must be 'raise' or 'keep', not 'ignore'"),  # type: ignore[arg-type]
    (lambda: ECHO.using(approver=TerminalApprover), "can't be the class TerminalApprover; give TerminalApprover"),  # type: ignore[arg-type]
    (lambda: configure_prices(5), "prices must be a mapping of models to prices, or the path of a file, not 5"),  # type: ignore[arg-type]
    (lambda: ECHO.using(force=True).run_sync(), "force=True requires a call, and there are no tools"),
    (lambda: ECHO.hook(plain), "plain can't be used as hooks: give a class or an object with the async method"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("give", "message"), WRONG)
def test_it_is_refused(give: Callable[[], Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        give()


def test_a_rule_needs_a_mapping_of_arguments() -> None:
    with pytest.raises(PolicyError, match="arguments of a rule must be a mapping of names, not \\['a'\\]"):
        Rule("deny", arguments=["a"])  # type: ignore[arg-type]


async def test_a_stream_must_be_entered() -> None:
    with pytest.raises(SettingsError, match="stream\\(\\) must be entered: `async with"):
        async for _ in ECHO.stream():  # type: ignore[attr-defined]
            pass


async def test_an_answer_as_text_is_what_the_model_wrote() -> None:
    scripted = ScriptedModel("Just words.")
    assert (await model(scripted).chat("?").parse_as(str).run()).output == "Just words."
    assert [message.role for message in scripted.seen[0].messages] == ["user"]
