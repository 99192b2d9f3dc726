"""The family whose one tool is called by an expression between two control tokens."""

from __future__ import annotations

from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_REASONING, Family, JsonOffer, WrappedResults
from ferrule.dialects.message_reader import Prose
from ferrule.dialects.nanochat_markers import CONTROL_TOKENS, OUTPUT_END, OUTPUT_START, PYTHON_END, PYTHON_START
from ferrule.dialects.notations.expression import Expression

_OTHERS = tuple(token for token in CONTROL_TOKENS if token not in (PYTHON_START, PYTHON_END))

NANOCHAT = Family(
    name="nanochat",
    models="nanochat, and the model in this package",
    syntax=Expression(PYTHON_START, PYTHON_END, others=_OTHERS),
    prose=Prose(turn_markers=tuple(t for t in _OTHERS if "output" not in t), result=(OUTPUT_START, OUTPUT_END)),
    results=WrappedResults(OUTPUT_START, OUTPUT_END, between=""),
    offer=JsonOffer(""),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_REASONING}),
    one_tool=("calculator", "expression"),
)

FAMILIES = (NANOCHAT,)
