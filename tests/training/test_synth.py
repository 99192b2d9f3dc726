"""Conversations as they are drawn and written: seeded, consistent with the calculator, whole on disk."""

import json
from pathlib import Path

import pytest

from ferrule.arithmetic.evaluate import calculate
from ferrule.training.synth import (
    EARLY,
    Mix,
    TemplateGrammar,
    draw_examples,
    load_shipped_grammar,
    parse_grammar,
    to_json,
    write_jsonl,
)

TEMPLATES = """
== add
kind: words
call: {a} + {b}
reply: {a} + {b} is {r}.
---
(what is|what's|compute) {a} plus {b}?
== share
kind: problem
call: {a} / {b}
reply: Each gets {r} {things}.
a: int 2..500
b: int 2..20
where: a % b == 0
---
{name} shares {a} {things} among {b} friends. How many does each get?
== count
kind: count
call: "{word}".count("{letter}")
reply: The letter "{letter}" appears {r} times in "{word}".
---
how many {letter}'s are in {word}?
== reverse
kind: reverse
call: "{word}"[::-1]
reply: "{word}" reversed is "{r}".
---
reverse {word}
== power
kind: words
call: {a} / 0
reply: {r}
weight: 0.01
---
{a} over nothing
== zero
kind: error
call: {a} / 0
reply: {a} ÷ 0 can't be done: {e}.
---
divide {a} by zero
== hello
kind: chat
reply: Hello!
---
hello
== twice
kind: words
call: {prev} * 2
reply: Twice {prev} is {r}.
follow: true
---
double that
"""


@pytest.fixture(scope="module")
def grammar() -> TemplateGrammar:
    return parse_grammar({"t.txt": TEMPLATES})


def test_a_seed_draws_the_same_conversations(grammar: TemplateGrammar) -> None:
    assert list(grammar.draw_examples(7, 50)) == list(grammar.draw_examples(7, 50))
    assert list(grammar.draw_examples(7, 50)) != list(grammar.draw_examples(8, 50))


def test_every_output_is_the_calculators(grammar: TemplateGrammar) -> None:
    for example in grammar.draw_examples(1, 400):
        for turn in example.turns:
            assert (turn.call is None) is (turn.output is None)
            if turn.call is not None:
                assert turn.output == calculate(turn.call)


def test_the_answer_holds_the_result(grammar: TemplateGrammar) -> None:
    for example in grammar.draw_examples(2, 400, mix=EARLY):
        (turn,) = example.turns
        if example.section == "add":
            assert turn.output is not None
            assert turn.reply.replace(",", "").endswith(f" is {turn.output}.")
        elif example.section == "power":
            assert turn.reply == "Sorry, that can't be worked out: division by zero."
        elif example.section == "zero":
            assert turn.reply.endswith("÷ 0 can't be done: division by zero.")
        elif example.section == "share" and turn.output == "1":
            assert "1 " in turn.reply
            assert not turn.reply.endswith("s.")


def test_a_following_turn_goes_on_from_the_number_before(grammar: TemplateGrammar) -> None:
    seen = 0
    for example in grammar.draw_examples(3, 600, mix=Mix(several_turns=1.0)):
        assert 2 <= len(example.turns) <= 4
        assert example.kind == "turns"
        for section, before, turn in zip(
            example.section.split("+")[1:], example.turns, example.turns[1:], strict=False
        ):
            if section == "twice":
                seen += 1
                assert turn.call == f"{before.output} * 2"
    assert seen > 100


def test_the_mix_is_kept_to(grammar: TemplateGrammar) -> None:
    mix = Mix(kinds={"chat": 1, "words": 3, "percent": 5}, several_turns=0.0)
    kinds = [example.kind for example in grammar.draw_examples(4, 400, mix=mix)]
    assert set(kinds) == {"chat", "words"}
    assert 60 <= kinds.count("chat") <= 140
    with pytest.raises(ValueError, match="no section"):
        list(grammar.draw_examples(1, 1, mix=Mix(kinds={"percent": 1})))


def test_the_format_is_nanochats(grammar: TemplateGrammar) -> None:
    example = next(example for example in grammar.draw_examples(5, 50, mix=EARLY) if example.section == "add")
    (turn,) = example.turns
    assert to_json(example) == {
        "messages": [
            {"role": "user", "content": turn.user},
            {
                "role": "assistant",
                "content": [
                    {"type": "python", "text": turn.call},
                    {"type": "python_output", "text": turn.output},
                    {"type": "text", "text": turn.reply},
                ],
            },
        ],
        "kind": "words",
    }


def test_a_file_is_written_whole_and_progress_told(grammar: TemplateGrammar, tmp_path: Path) -> None:
    steps: list[int] = []
    path = tmp_path / "data.jsonl"
    assert write_jsonl(path, 1, 1200, steps.append, grammar=grammar) == 1200
    assert sum(steps) == 1200
    lines = path.read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [to_json(example) for example in grammar.draw_examples(1, 1200)]


def test_an_interruption_leaves_what_was_there(grammar: TemplateGrammar, tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("before", "utf-8")

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_jsonl(path, 1, 1200, interrupt, grammar=grammar)
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.jsonl"]
    assert path.read_text("utf-8") == "before"


@pytest.mark.parametrize("held_out", [False, True])
def test_every_section_of_the_package_gives_turns(held_out: bool) -> None:
    for section in load_shipped_grammar().sections:
        if not section.follow and section.opening is None:
            alone = TemplateGrammar([section])
            mix = Mix(kinds={section.kind: 1}, several_turns=0.0, most_characters=2000)
            assert len(list(alone.draw_examples(1, 5, held_out=held_out, mix=mix))) == 5


def test_early_conversations_are_single_and_short() -> None:
    for example in draw_examples(1, 500, mix=EARLY):
        assert len(example.turns) == 1
        assert example.characters <= (EARLY.most_characters if example.tools is None else EARLY.most_tool_characters)


def test_two_questions_are_answered_in_their_order() -> None:
    mix = Mix(kinds={"two": 1}, several_turns=0.0, tools=0.0)
    for example in draw_examples(1, 60, mix=mix):
        (turn,) = example.turns
        assert len(turn.steps) == 2
        assert all(step.output == calculate(step.call) for step in turn.steps)
