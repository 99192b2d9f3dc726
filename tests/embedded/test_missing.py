"""What a model may ask for before it calls a tool: what the tool requires and the request doesn't tell."""

from __future__ import annotations

from typing import ClassVar

from grammar_checks import Bytes, is_in, spec_of

from ferrule.dialects.grammar import make_other_text, make_text_choice
from ferrule.embedded.guide import EmbeddedGuide
from ferrule.embedded.missing import make_question_grammar, write_question
from ferrule.engines.constraints import GrammarMatcher, VocabularyIndex
from tables import each_case

TEXT, NUMBER, UNIT = {"type": "string"}, {"type": "integer"}, {"enum": ["km", "mile", "foot"]}
TIMER = spec_of({"minutes": NUMBER, "label": {"type": "string", "default": ""}}, ["minutes"])
CONVERT = spec_of({"amount": {"type": "number"}, "source": UNIT, "target": UNIT}, ["amount", "source", "target"])
WEIGH = spec_of({"weight_kg": NUMBER, "meals": NUMBER, "pet": TEXT}, ["weight_kg", "pet"])
LOCK = spec_of({})


def list_questions(spec, request):
    names = list(spec.parameters["properties"])
    pairs = [(one, other) for one in names for other in names if one != other]
    grammar = make_question_grammar([spec], request)
    return {asked for asked in [(one,) for one in names] + pairs if grammar and is_in(grammar, write_question(asked))}


def test_a_question_names_what_is_required_in_its_order():
    assert write_question(["cityName", "due_date", "x"]) == "Which city name, due date and x?"
    assert list_questions(TIMER, "set a timer") == {("minutes",)}
    assert list_questions(WEIGH, "feed it") == {("weight_kg",), ("pet",), ("weight_kg", "pet")}
    assert not list_questions(LOCK, "lock the door")


@each_case(
    ("spec", "request_", "asked"),
    [
        (TIMER, "set a timer for 10 minutes", False),
        (TIMER, "a timer of ten minutes", False),
        (TIMER, "set a timer at 19:30", True),
        (TIMER, "the 3rd timer", True),
        (TIMER, "one timer please", True),
        (WEIGH, "food for a 12 kg dog", False),
        (WEIGH, "food for 2 dogs", True),
        (WEIGH, "2 meals for 12 kilos", False),
    ],
)
def test_a_number_that_was_told_is_not_asked_for(spec, request_, asked):
    assert ((spec.parameters["required"][0],) in list_questions(spec, request_)) is asked


def test_choices_that_were_told_are_not_asked_for():
    assert list_questions(CONVERT, "convert 5 miles to km") == set()
    assert list_questions(CONVERT, "convert 5 miles") == {("source",), ("target",), ("source", "target")}


class EndedBytes(Bytes):
    """The ending token is that of the dialect's turns."""

    control: ClassVar = {"<|assistant_end|>": 256}


def test_a_model_asks_nothing_else():
    def may_say(tools, request, text):
        matcher = GrammarMatcher(EmbeddedGuide().make_grammar(tools, [request], request), VocabularyIndex(EndedBytes()))
        for token in (*text.encode(), 256):
            if not matcher.allows(token):
                return False
            matcher.advance(token)
        return True

    assert may_say([TIMER], "set a timer", "Which minutes?")
    assert may_say([TIMER], "set a timer", "Whatever.")
    assert not may_say([TIMER], "set a timer", "Which minutes do you mean?")
    assert not may_say([TIMER], "set a timer", "Which label?")
    assert not may_say([LOCK], "lock the door", "Which door?")


def test_texts_that_begin_alike_share_their_beginning():
    texts = ["12", "1", "123", "2", "", "-12"]
    grammar = make_text_choice(texts)
    assert all(is_in(grammar, text) for text in texts)
    assert not any(is_in(grammar, text) for text in ("3", "13", "1234", "-", "-1"))
    assert is_in(make_text_choice(["one"]), "one")


def test_any_other_text():
    grammar = make_other_text("Who")
    assert all(is_in(grammar, text) for text in ("", "W", "Wh", "Why?", "who", "é", "WWho"))
    assert not any(is_in(grammar, text) for text in ("Who", "Who?", "Whoever"))
