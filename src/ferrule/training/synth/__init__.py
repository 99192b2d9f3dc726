"""`ferrule synth`: draws the conversations that the embedded model is trained and measured on.

Template files (`templates/*.txt`) define the requests and replies; this package parses them, fills their slots,
computes every output with ferrule's own calculator, and adds the noise of real users.

    grammar, parsing, conditions                the content of template files, and how they are parsed
    words, numbers, expressions                 draw the values of slots
    number_words, noise                         write a request as real users do
    replies, turns, pairs                       write a call and a reply; draw a whole turn; join two
    generator, example                          draw conversations in a mix of kinds; write them to a file
    tool_use                                    conversations with foreign tools
    collisions                                  finds templates that could have written a held-out request
"""

from ferrule.training.synth.example import Example, Step, Turn, to_json
from ferrule.training.synth.generator import (
    CALCULATOR_ALONE,
    EARLY,
    FULL,
    Mix,
    TemplateGrammar,
    draw_examples,
    load_shipped_grammar,
    parse_grammar,
    write_jsonl,
)
from ferrule.training.synth.grammar import GrammarError, Problem

__all__ = [
    "CALCULATOR_ALONE",
    "EARLY",
    "FULL",
    "Example",
    "GrammarError",
    "Mix",
    "Problem",
    "Step",
    "TemplateGrammar",
    "Turn",
    "draw_examples",
    "load_shipped_grammar",
    "parse_grammar",
    "to_json",
    "write_jsonl",
]
