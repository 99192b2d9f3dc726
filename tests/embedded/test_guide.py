"""What steers the embedded model's calls: each rule forbids something, and nothing of it once it is switched off."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from grammar_checks import Bytes, spec_of
from random_models import random_model
from reciting_engine import RecitingEngine

import ferrule.embedded
from ferrule.conversation import Conversation, ToolCall, assistant, user
from ferrule.embedded import RULES, find_embedded_folder, load_embedded_model
from ferrule.embedded.guide import EmbeddedGuide
from ferrule.engines import NumpyEngine
from ferrule.engines.constraints import GrammarMatcher, VocabularyIndex
from ferrule.errors import SettingsError
from ferrule.models.checkpoints.loading import load_local_model
from ferrule.models.protocol import ModelSettings
from ferrule.toolspec import ToolSpec
from ferrule.training.embedded.evaluation import EvaluationSettings, run_evaluation

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
WATER = ToolSpec("water_plant", "", {"type": "object", "properties": {}})
SNOW = ToolSpec("snow_report", "", {"type": "object", "properties": {"resort": TEXT}})
REFUND = spec_of({"bottles": NUMBER, "cans": NUMBER}, ["bottles", "cans"])
CITY = spec_of({"city": TEXT})
COUNT = spec_of({"count": NUMBER})
FORBIDDEN = {
    "copy_boundaries": ([CITY], "rain in the city of Oslo", 'f(city="in the")'),
    "copying": ([CITY], "rain in Oslo", 'f(city="Bergen")'),
    "missing": ([REFUND], "take 3 back", "f(bottles=3, cans=3)"),
    "named_numbers": ([REFUND], "14 bottles and 9 cans", "f(bottles=9, cans=14)"),
    "relevance": ([WATER, SNOW], "is there snow in Lech", "water_plant()"),
    "told_numbers": ([COUNT], "12 of them", "f(count=13)"),
}
"""By rule: a call after a request, with the tools on offer, that the rule forbids."""


class Tokens(Bytes):
    """Bytes, and the control tokens of a turn."""

    control: ClassVar = {"<|assistant_end|>": 256, "<|python_start|>": 257, "<|python_end|>": 258}
    vocabulary_size = 259


def may_write(guide: EmbeddedGuide, tools: list[ToolSpec], request: str, *tokens: int) -> bool:
    grammar = guide.constrain(Conversation((user(request),)), tools, ModelSettings())
    assert grammar is not None
    matcher = GrammarMatcher(grammar, VocabularyIndex(Tokens()))
    for token in tokens:
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return True


def test_each_rule_has_a_file() -> None:
    folder = Path(ferrule.embedded.__file__).parent
    assert [name for name in RULES if not (folder / f"{name}.py").is_file()] == []


@pytest.mark.parametrize("rule", sorted(FORBIDDEN))
def test_a_rule_is_switched_off_by_its_name(rule: str) -> None:
    tools, request, call = FORBIDDEN[rule]
    written = (257, *call.encode(), 258)
    assert not may_write(EmbeddedGuide(), tools, request, *written)
    assert may_write(EmbeddedGuide().without(rule), tools, request, *written)
    assert may_write(EmbeddedGuide().without(*RULES), tools, request, *written)


def test_without_the_rule_anything_may_be_asked_for() -> None:
    question = (*b"Which door?", 256)
    assert not may_write(EmbeddedGuide(), [CITY], "rain?", *question)
    assert may_write(EmbeddedGuide().without("missing"), [CITY], "rain?", *question)


def test_withholding_is_switched_off_by_its_name() -> None:
    asked = Conversation((user("rain?"),))
    call = assistant(ToolCall("1", "f", '{"city": "Oslo"}'))
    guide = EmbeddedGuide(threshold=0.5)
    assert guide.holds_calls
    assert guide.review(call, (0.6,), asked) is guide.review(assistant("Hm."), (), asked) is None
    question = guide.review(call, (0.4,), asked)
    assert question is not None
    assert question.text == 'I\'m not sure. Should I call f(city="Oslo")?'
    without = guide.without("withholding")
    assert not without.holds_calls
    assert without.review(call, (0.4,), asked) is None


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(SettingsError, match="unknown rule 'relevence'; expected one of copy_boundaries"):
        EmbeddedGuide().without("relevence")


def test_without_a_guide_a_model_has_no_rules_to_switch_off(tmp_path: Path) -> None:
    assert random_model(tmp_path, "nanochat").guide is None
    with pytest.raises(SettingsError, match="no rules steer the calls"):
        run_evaluation(EvaluationSettings(model=tmp_path, count=1, without=("relevance",)))


def test_a_checkpoint_of_its_dialect_is_steered_as_the_embedded_model_is(tmp_path: Path) -> None:
    guide = load_embedded_model().guide
    assert guide == load_local_model(find_embedded_folder()).guide
    assert isinstance(guide, EmbeddedGuide)
    assert guide.threshold is not None
    assert random_model(tmp_path, "nanochat-tools").guide == EmbeddedGuide()


class AskedEngine(RecitingEngine):
    """One that can be constrained, and keeps what it was to keep to."""

    can_constrain = True
    constraint: Any = None

    def generate(self, ids: Any, **options: Any) -> Any:
        self.constraint = options["constraint"]
        return super().generate(ids, **options)


@pytest.mark.parametrize("can_constrain", [True, False])
async def test_a_guides_grammar_goes_to_every_engine_that_takes_one(can_constrain: bool) -> None:
    local = load_embedded_model(engine=lambda folder: AskedEngine(folder, ["Hm.<|assistant_end|>"]))
    engine = local.engine
    assert isinstance(engine, AskedEngine)
    engine.can_constrain = can_constrain
    asked = Conversation((user("rain in Oslo"),))
    _ = [event async for event in local.stream(asked, [CITY], ModelSettings())]
    assert local.guide is not None
    assert engine.constraint == (local.guide.constrain(asked, [CITY], ModelSettings()) if can_constrain else None)


def test_the_engine_in_the_package_takes_a_grammar_if_it_knows_its_ids() -> None:
    embedded = load_embedded_model()
    assert embedded.engine.can_constrain
    assert not NumpyEngine.load(find_embedded_folder()).can_constrain
