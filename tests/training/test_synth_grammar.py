"""Template files: what is read from them, what is refused, and which requests a line could have written."""

import random
from itertools import pairwise

import pytest

from ferrule.training.synth import GrammarError, Mix, load_shipped_grammar, parse_grammar
from ferrule.training.synth.collisions import find_collisions
from ferrule.training.synth.conditions import ConditionError, parse_condition
from ferrule.training.synth.grammar import Slot, expand, find_slots
from ferrule.training.synth.numbers import Hint, HintError, parse_hint
from ferrule.training.synth.parsing import parse_phrasing, parse_templates
from tables import each_case

BASIC = """
# a comment
list pal: mate; buddy; my old friend

== add
kind: words
call: {a} + {b}
reply: {a} + {b} is {r}.
a: int
where: a > b
---
(what is|what's) {a} plus {b}[, {pal}]?
sum: {a}, {b}
"""


def expansions(text: str) -> set[str]:
    phrasing = parse_phrasing(text, "t.txt", 1)
    found = set()
    for seed in range(300):
        parts: list[str | Slot] = []
        expand(phrasing.node, random.Random(seed), parts)
        found.add("".join(part if isinstance(part, str) else f"<{part.name}>" for part in parts))
    return found


def test_alternatives_and_options_nest() -> None:
    assert expansions("(a|b[ c|d])e {x}") == {"ae <x>", "be <x>", "b ce <x>", "bde <x>"}
    assert parse_phrasing("(a|b[ c|d])e {x}", "t.txt", 1).expansions == 4


def test_escaped_brackets_are_literal() -> None:
    assert expansions(r"\({a}\) \[\] \{\} \| \\") == {"(<a>) [] {} | \\"}


@each_case("text", ["(a|b", "[a", "a)", "a]", "a|b", "{A}", "{a", "}", "(a]"])
def test_malformed_phrasing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"column|closed"):
        parse_phrasing(text, "t.txt", 1)


def test_slots_that_are_certain_are_told_from_possible_ones() -> None:
    node = parse_phrasing("({a} and {b}|{a}) [{c}]", "t.txt", 1).node
    assert find_slots(node) == {"a", "b", "c"}
    assert find_slots(node, certain=True) == {"a"}


def test_a_section_is_read_whole() -> None:
    (section,) = parse_grammar({"t.txt": BASIC}).sections
    assert (section.name, section.kind, section.line) == ("add", "words", 5)
    assert section.hints == {"a": Hint("int")}
    assert section.lists["pal"] == ("mate", "buddy", "my old friend")
    assert [phrasing.line for phrasing in section.phrasings] == [12, 13]


@each_case(
    ("old", "new", "where"),
    [
        ("kind: words", "kind: word", "t.txt:6: unknown kind 'word'; expected one of"),
        ("sum: {a}, {b}", "sum: {a}", "t.txt:13: {b}: in the call"),
        ("sum: {a}, {b}", "sum: {a}, {b} {city}", "t.txt:13: slot {city} is neither"),
        ("sum: {a}, {b}", "sum: ({a}, {b}", "t.txt:13: the '('"),
        ("a: int", "a: integer", "t.txt:9: unknown hint"),
        ("where: a > b", "where: print(a)", "t.txt:10: where"),
        ("reply: {a} + {b} is {r}.", "", "t.txt:5: section 'add' has no reply"),
        ("call: {a} + {b}", "", "t.txt:8: the reply uses a result"),
        ("== add", "stray\n== add", "t.txt:5: neither a list nor part of a section"),
    ],
)
def test_a_mistake_is_named_by_file_and_line(old: str, new: str, where: str) -> None:
    with pytest.raises(GrammarError) as caught:
        parse_grammar({"t.txt": BASIC.replace(old, new)})
    assert where in str(caught.value)


def test_a_section_may_not_come_twice() -> None:
    _, problems = parse_templates({"a.txt": BASIC, "b.txt": BASIC})
    assert [str(problem) for problem in problems] == ["b.txt:5: section 'add' is in a.txt too"]


def test_conditions() -> None:
    condition = parse_condition("a % b == 0 and 1 < a / b < 10")
    assert condition.multiples == (("a", "b"),)
    assert condition.holds({"a": 12, "b": 4})
    assert not condition.holds({"a": 13, "b": 4})
    assert not condition.holds({"a": 13, "b": 0})
    for evil in ("a", "a.b > 1", "f(a) > 1", "a >", "'x' == a", "a ** 2 > b"):
        with pytest.raises(ConditionError):
            parse_condition(evil)


def test_hints() -> None:
    assert parse_hint("money 1..50") == Hint("money", 1.0, 50.0)
    assert parse_hint("2..9 nonzero") == Hint("int", 2.0, 9.0, nonzero=True)
    assert parse_hint("") == Hint()
    for wrong in ("integer", "9..2", "int money", "int 2..9 3..4"):
        with pytest.raises(HintError):
            parse_hint(wrong)


@pytest.mark.parametrize(
    "request_text",
    [
        "What's 12 plus 1,234?",
        "whats twelve hundred and five plus -3.5",
        "hey, can you tell me what is   “12” plus $13 please",
        "what is negative five plus a dozen, mate",
        "Sum: 3, minus four",
        "sum:3,2.5 million!!",
    ],
)
def test_a_request_that_a_template_could_have_written_is_found(request_text: str) -> None:
    sections = parse_grammar({"t.txt": BASIC}).sections
    assert {collision.id for collision in find_collisions({"x": request_text}, sections)} == {"x"}


@pytest.mark.parametrize(
    "request_text",
    ["what is 12 plus 13 minus 4", "12 plus 13", "what is twelve plus thirst", "sum of 3, 4", "what is 1 plus"],
)
def test_another_wording_is_not(request_text: str) -> None:
    assert find_collisions({"x": request_text}, parse_grammar({"t.txt": BASIC}).sections) == []


def test_open_slots_take_what_they_can_draw_and_no_more() -> None:
    template = """
== count
kind: count
call: "{word}".count("{letter}")
reply: {r}
---
how many {letter} in {word}?
== calculate
kind: symbols
call: {expr}
reply: {r}
---
work {expr} out
== nonsense
kind: refusal
reply: no
---
{phrase}
"""
    sections = parse_grammar({"t.txt": template}).sections
    hits = {
        "1": "How many R in 'strawberry'",
        "2": "how many words in strawberry",
        "3": "how many r in straw berry",
        "4": "work (3+4) × 5 out",
        "5": "work me out",
    }
    assert [(collision.line, collision.id) for collision in find_collisions(hits, sections)] == [(7, "1"), (13, "4")]


def test_the_templates_of_the_package_have_no_mistakes() -> None:
    assert len(load_shipped_grammar().sections) > 20


NEW_HEADERS = """
== compare
kind: compare
call: {a} - {b}
reply: {a} is bigger, by {r}.
below: {b} is bigger, by {r:size}.
equal: {a} and {b} are equal.
a: int 1..3
b: int 1..3
---
{a} or {b}
== average
kind: average
call: ({list}) / {list:count}
second: {list:product}
reply: The average of {list} is {r}, {list:product} is {r2}.
list: int 2..9
---
mean, product: {list}
== name
kind: letter
call: "{name}"[{nth} - 1]
reply: The {nth:th} letter of "{name}" is "{r}".
opening: I'm {name}
opened: Hello!
---
the {nth} letter of my name
"""


def test_the_sign_of_a_result_decides_the_reply() -> None:
    compared = parse_grammar({"t.txt": NEW_HEADERS}).draw_examples(
        1, 60, mix=Mix(kinds={"compare": 1}, several_turns=0)
    )
    replies = {str(turn.output): turn.reply for example in compared for turn in example.turns}
    assert replies["2"] == "3 is bigger, by 2."
    assert replies["-2"] == "3 is bigger, by 2."
    assert replies["0"].endswith(" are equal.")


def test_a_list_is_summed_counted_and_multiplied() -> None:
    mix = Mix(kinds={"average": 1}, several_turns=0)
    for example in parse_grammar({"t.txt": NEW_HEADERS}).draw_examples(1, 30, mix=mix):
        (turn,) = example.turns
        average, product = turn.steps
        numbers = product.call.split(" * ")
        assert average.call == f"({' + '.join(numbers)}) / {len(numbers)}"
        assert f" and {numbers[-1]} is " in turn.reply
        assert 2 <= len(numbers) <= 6


def test_an_opening_gives_the_name_a_turn_before() -> None:
    mix = Mix(kinds={"compare": 1}, several_turns=1)
    opened = 0
    for example in parse_grammar({"t.txt": NEW_HEADERS}).draw_examples(1, 60, mix=mix):
        for before, turn in pairwise(example.turns):
            if turn.call is not None and turn.call.endswith("- 1]"):
                opened += 1
                assert before.reply == "Hello!"
                assert turn.call[1 : turn.call.index('"', 1)].lower() in before.user.lower()
    assert opened > 10


def test_an_opening_without_its_reply_is_refused() -> None:
    with pytest.raises(GrammarError, match="opening and opened stand together"):
        parse_grammar({"t.txt": NEW_HEADERS.replace("opened: Hello!\n", "")})
