"""`ferrule synth`: draws the conversations that the embedded model is trained and measured on.

Template files (`templates/*.txt`) say what is asked and how it is answered; this room parses them, fills their slots,
computes every output with the package's own calculator, and adds the noise of real users. Training is elsewhere.
"""

from ferrule.training.synth.conversation import Example, Turn, to_json
from ferrule.training.synth.grammar import GrammarError, Problem
from ferrule.training.synth.synthesiser import (
    EARLY,
    FULL,
    Grammar,
    Mix,
    examples,
    parse_grammar,
    shipped_grammar,
    write_jsonl,
)

__all__ = [
    "EARLY",
    "FULL",
    "Example",
    "Grammar",
    "GrammarError",
    "Mix",
    "Problem",
    "Turn",
    "examples",
    "parse_grammar",
    "shipped_grammar",
    "to_json",
    "write_jsonl",
]
