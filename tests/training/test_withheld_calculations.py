"""Calculations that were withheld, with foreign tools and without: the user says yes, no, or what is right."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ferrule.training.synth import CALCULATOR_ALONE, EARLY, FULL, Example, Mix, Step, Turn, draw_examples
from ferrule.training.synth.tool_use.tool_replies import NOT_DONE
from ferrule.training.synth.tool_use.withheld_calculations import withhold_calculation

ASKS = "I'm not sure. Should I call {}?"
PRODUCT = Turn("what is 12 times 34", (Step("12 * 34", "408"),), "12 × 34 is 408.")


def find_withheld(examples: list[Example]) -> Iterator[tuple[Turn, Turn]]:
    """Each turn that was withheld, and the one after it."""
    for example in examples:
        for asked, answered in zip(example.turns, example.turns[1:], strict=False):
            if not asked.is_trained:
                yield asked, answered


def test_a_yes_makes_the_call_a_no_none_and_a_correction_the_right_one() -> None:
    seen = set()
    for seed in range(300):
        turns = withhold_calculation(random.Random(seed), PRODUCT, False)
        assert turns is not None
        asked, answered = turns
        assert (asked.user, asked.steps, asked.is_trained) == (PRODUCT.user, (), False)
        assert answered.is_trained
        if not answered.steps:
            assert (asked.reply, answered.reply) == (ASKS.format("12 * 34"), NOT_DONE)
            seen.add("no")
            continue
        assert (answered.steps, answered.reply) == (PRODUCT.steps, PRODUCT.reply)
        is_right = asked.reply == ASKS.format("12 * 34")
        seen.add("yes" if is_right else "correction")
        # A correction says at least the number that was wrong.
        assert is_right or "12" in answered.user or "34" in answered.user, (asked.reply, answered.user)
    assert seen == {"yes", "no", "correction"}


def test_what_has_several_calls_or_none_is_not_withheld() -> None:
    several = Turn("12 times 34, and 2 + 2", (*PRODUCT.steps, Step("2 + 2", "4")), "408 and 4.")
    assert withhold_calculation(random.Random(1), several, False) is None
    assert withhold_calculation(random.Random(1), Turn("hello", (), "Hello!"), False) is None


def test_a_small_share_without_foreign_tools_is_withheld() -> None:
    drawn = list(draw_examples(4, 2000, mix=replace(FULL, tools=0)))
    withheld = list(find_withheld(drawn))
    assert 10 < len(withheld) < 60
    assert all(example.tools is None for example in drawn)
    assert all(asked.reply.startswith("I'm not sure. Should I call ") for asked, _ in withheld)


@pytest.mark.parametrize("mix", [CALCULATOR_ALONE, EARLY])
def test_what_is_measured_and_the_start_of_training_have_none(mix: Mix) -> None:
    assert not list(find_withheld(list(draw_examples(4, 300, mix=mix))))


def test_the_calculator_is_withheld_beside_foreign_tools_and_does_what_it_does_alone() -> None:
    drawn = list(draw_examples(5, 1200, mix=Mix(tools=1)))
    calls = set()
    for example in drawn:
        names = {tool["name"] for tool in example.tools or ()}
        for asked, answered in find_withheld([example]):
            step = (
                answered.steps[0].call if answered.steps else asked.reply.removeprefix("I'm not sure. Should I call ")
            )
            if step.partition("(")[0] not in names:
                assert "calculator" in names
                calls.add(step)
    assert len(calls) > 3
    replies = [turn.reply for example in drawn for turn in example.turns]
    for words in ("The average of ", " is bigger, by ", " letter of ", " words."):
        assert any(words in reply for reply in replies), words
