"""What counts as right, on answers that go through the real pipeline; figures, intervals and what is never shown."""

import asyncio
import io
import json
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from rich.console import Console

from ferrule.agent.pipeline import Pipeline
from ferrule.builtin_tools import calculator
from ferrule.conversation import MalformedCall, ToolCall, assistant
from ferrule.errors import ModelError, SettingsError
from ferrule.formats.nanochat import parse_call_arguments
from ferrule.models.scripted import ScriptedModel
from ferrule.training.embedded.asking import ScoredQuestion, answer_requests, ask_all
from ferrule.training.embedded.evaluation import (
    HELD_OUT,
    EvaluationSettings,
    collect_wrong_answers,
    evaluate,
    run_evaluation,
)
from ferrule.training.embedded.handwritten import read_calculator_requests
from ferrule.training.embedded.report import Share, format_wrong_answers, make_rich_tables, make_table
from ferrule.training.embedded.scoring import (
    EvaluationQuestion,
    HandwrittenRequest,
    MadeCall,
    ModelAnswer,
    Score,
    draw_held_out_questions,
    draw_long_results,
    find_numbers,
    list_refusals,
    make_questions,
    score_turns,
    states_answer,
)
from ferrule.training.synth import Example, Step, Turn, draw_examples
from tables import each_case

REFUSAL = "a refusal"
"""Stands in a case for the first of the refusals that ship, which take seconds to list."""
ONE_AT_A_TIME = EvaluationSettings(count=40, together=1, failures=True)


def call(expression: str, call_id: str = "call_1") -> ToolCall:
    return ToolCall(call_id, "calculator", json.dumps({"expression": expression}))


def script_of(examples: Sequence[Example]) -> list[str | ToolCall]:
    """What a model that makes no mistake writes."""
    script: list[str | ToolCall] = []
    for example in examples:
        names = {str(one["name"]) for one in example.tools or ()} - {"calculator"}
        for turn in example.turns:
            if not turn.is_trained:
                continue
            for step in turn.steps:
                call_id, name = f"call_{len(script)}", step.call.partition("(")[0]
                arguments = parse_call_arguments(step.call) if name in names else {"expression": step.call}
                script.append(
                    ToolCall(
                        call_id, name if name in names else "calculator", json.dumps(arguments, ensure_ascii=False)
                    )
                )
            script.append(turn.reply)
    return script


def ask(model: ScriptedModel, questions: Sequence[EvaluationQuestion], together: int = 1) -> list[ScoredQuestion]:
    return asyncio.run(ask_all(Pipeline(model), questions, together))


def score(kind: str, answer: str | tuple[str, ...] | None, *script) -> Score:
    """How a list's phrasing is scored where the model writes `script`."""
    (asked,) = ask(ScriptedModel(*script), make_questions([HandwrittenRequest("x1", kind, ("?",), answer)]))
    return asked.score


RIGHT, WRONG = Score(True, True), Score(False, False)
ONLY_CALL, ONLY_ANSWER = Score(True, False), Score(False, True)


@each_case(
    ("kind", "answer", "script", "expected"),
    [
        ("words", "1200", [call("1,000 + 200"), "1000 + 200 is 1,200."], RIGHT),
        ("words", "1200", ["That is 1200."], ONLY_ANSWER),
        ("words", "1200", [call("1000 + 200"), "That is 12000."], ONLY_CALL),
        ("words", "1200", [call("1000 + 201"), "That is 1,201."], WRONG),
        ("words", "1200", [call("1000 +"), call("1000 + 200", "call_2"), "1,200."], RIGHT),
        ("words", "-4", [call("5 - 9"), "5 - 9 is -4."], RIGHT),
        ("words", "4", [call("5 - 9"), "5 - 9 is -4."], WRONG),
        ("percent", "63.5", [call("127 * 50 / 100"), "That makes $63.50."], RIGHT),
        ("percent", "15", [call("3 / 20 * 100"), "That is 15%."], RIGHT),
        ("count", "1", [call('"wow".count("o")'), 'The letter "o" appears once in "wow".'], RIGHT),
        ("count", "2", [call('"wow".count("w")'), 'The letter "w" appears twice in "wow".'], RIGHT),
        ("count", "2", [call('"wow".count("w")'), 'The letter "w" appears once in "wow".'], ONLY_CALL),
        ("reverse", "dlrow olleh", [call('"hello world"[::-1]'), '"hello world" reversed is "dlrow olleh".'], RIGHT),
        ("reverse", "stop", [call('"pots"[::-1]'), '"pots" reversed is "stops".'], ONLY_CALL),
        ("reverse", "010", [call("10"), "It is 10."], WRONG),
        ("letter", "n", [call('"tea spoon"[7]'), 'The 8th letter is "n".'], ONLY_ANSWER),
        ("two", ("8", "9"), [call("72 / 9"), call("81 / 9", "call_2"), "72 ÷ 9 is 8. 81 ÷ 9 is 9."], RIGHT),
        ("two", ("8", "9"), [call("72 / 9"), "72 ÷ 9 is 8."], ONLY_ANSWER),
        ("two", ("8", "9"), [call("72 / 9"), call("81 / 9", "call_2"), "The second is 9."], ONLY_CALL),
        ("compare", "5/8", ["5/8 is larger."], RIGHT),
        ("compare", "5/8", ["3/5 is larger."], WRONG),
        ("compare", "-8", ["-8 is colder."], RIGHT),
        ("error", None, [call("7 / 0"), "7 ÷ 0 can't be computed: division by zero."], RIGHT),
        ("error", None, [call("7 / 0"), "7 ÷ 0 is 0."], ONLY_CALL),
        ("error", None, [call("7 / 1"), "7 ÷ 1 can't be computed."], ONLY_ANSWER),
        ("error", None, ["That can't be worked out."], ONLY_ANSWER),
        ("chat", None, ["Hello!"], RIGHT),
        ("chat", None, [REFUSAL], ONLY_CALL),
        ("chat", None, [call("1 + 1"), "Hello!"], ONLY_ANSWER),
        ("refusal", None, [REFUSAL], RIGHT),
        ("refusal", None, ["Hello!"], ONLY_CALL),
        ("refusal", None, [call("1 + 1"), REFUSAL], ONLY_ANSWER),
    ],
)
def test_answers_to_phrasings(kind, answer, script, expected) -> None:
    script = [min(list_refusals()) if turn == REFUSAL else turn for turn in script]
    assert score(kind, answer, *script) == expected


def test_a_malformed_call_is_a_call_that_failed() -> None:
    broken = assistant(MalformedCall("call_1", "<|python_start|>1 +", "truncated"))
    (answer,) = asyncio.run(answer_requests(["?"], Pipeline(ScriptedModel(broken, "Sorry.")).using(calculator)))
    assert [(one.text, one.is_error) for one in answer.calls] == [("<|python_start|>1 +", True)]
    assert answer.reply == "Sorry."


def test_a_model_that_never_ends_its_turn_is_wrong_whatever_it_said() -> None:
    calls = [call("1 + 1", f"call_{number}") for number in range(16)]
    (answer,) = asyncio.run(answer_requests(["?", "and?"], Pipeline(ScriptedModel(*calls)).using(calculator)))
    assert not answer.is_finished
    assert score("words", "2", *calls) == ONLY_CALL
    assert score_turns([Turn("?", (), "")], [answer]) == WRONG


def test_the_templates_own_answers_are_all_right() -> None:
    drawn = list(draw_examples(ONE_AT_A_TIME.seed, 120, held_out=True))
    assert {len(example.turns) for example in drawn} >= {1, 2}
    assert not all(turn.is_trained for example in drawn for turn in example.turns)
    model = ScriptedModel(*script_of(drawn))
    settings = EvaluationSettings(count=120, together=1, failures=True)
    seen: list[tuple[int, int]] = []
    report = asyncio.run(evaluate(model, settings, lambda done, total: seen.append((done, total))))
    model.assert_used_up()
    assert report.failures == ()
    (table,) = report.tables
    assert (table.name, table.total.n, table.total.both.right) == (HELD_OUT, 120, 120)
    assert seen == [(done, 120) for done in range(1, 121)]
    # The result that the model is shown is the output that its training data has.
    results = [message.result.text for message in model.seen[-1].messages if message.role == "tool"]
    assert results == [step.output for turn in drawn[-1].turns for step in turn.steps]
    assert "tools" in {row.kind for row in table.rows}


@pytest.mark.parametrize(
    ("calls", "reply", "expected"),
    [
        (("2 + 3",), "2 + 3 is 5.", RIGHT),
        (("3 + 2",), "2 + 3 is 5.", ONLY_ANSWER),
        (("2 + 3", "2 + 3"), "2 + 3 is 5.", ONLY_ANSWER),
        ((), "2 + 3 is 5.", ONLY_ANSWER),
        (("2 + 3",), "2 + 3 is 5", ONLY_CALL),
    ],
)
def test_every_turn_of_a_held_out_problem_must_be_right_to_the_letter(calls, reply, expected) -> None:
    turn = Turn("2 plus 3", (Step("2 + 3", "5"),), "2 + 3 is 5.")
    chat = Turn("hi", (), "Hello!")
    answer = ModelAnswer(tuple(MadeCall(one, "5") for one in calls), reply)
    assert score_turns([turn], [answer]) == expected
    assert score_turns([chat, turn], [ModelAnswer((), "Hello!"), answer]) == expected
    assert score_turns([chat, turn], [ModelAnswer((), "Hello!")]) == WRONG


def test_later_requests_are_made_in_the_conversation_that_the_model_itself_held() -> None:
    model = ScriptedModel(call("1 + 1"), "Three.", "Four.")
    asyncio.run(answer_requests(["1 + 1?", "and one more?"], Pipeline(model).using(calculator)))
    assert [(message.role, message.text) for message in model.seen[-1].messages] == [
        ("user", "1 + 1?"),
        ("assistant", ""),
        ("tool", ""),
        ("assistant", "Three."),
        ("user", "and one more?"),
    ]


def test_failures_are_told_with_what_was_called_and_said() -> None:
    requests = (
        HandwrittenRequest("s1", "words", ("two and two",), "4"),
        HandwrittenRequest("s2", "chat", ("hi",), None),
    )
    model = ScriptedModel(call("2 * 3"), "2 × 3 is 6.", "Hello!")
    asked = ask(model, make_questions(requests))
    failures = collect_wrong_answers(asked)
    assert [failure.id for failure in failures] == ["s1"]
    assert list(format_wrong_answers(failures)) == [
        "s1 (words): wrong call and answer",
        "  > 'two and two'",
        "    2 * 3  →  6",
        "    '2 × 3 is 6.'",
        "",
    ]
    assert [one.score.is_right for one in asked] == [False, True]


def test_long_results_must_be_copied_to_the_letter_and_grouped_rightly() -> None:
    drawn = list(draw_long_results(20, seed=1))
    assert {question.kind for question in drawn} == {"24 digits", "5 to 12 digits"}
    products = {}
    for question in drawn:
        left, _, right = question.prompts[0].split()
        products[question.id] = (f"{left} * {right}", int(left) * int(right))
    assert {len(str(product)) for name, (_, product) in products.items() if name.startswith("long")} == {24}

    def answer(write) -> list[bool]:
        script: list[str | ToolCall] = []
        for question in drawn:
            expression, product = products[question.id]
            script += [call(expression), f"{expression} is {write(product)}."]
        return [one.score.is_right for one in ask(ScriptedModel(*script), drawn)]

    assert all(answer(str))
    assert all(answer(lambda product: f"{product:,}"))
    assert not any(answer(lambda product: f"{product // 100}{product % 100 ^ 1:02}"))  # one digit is another
    assert not any(answer(lambda product: f"{product // 100:,},{product % 100:02}"))  # a group of two digits


def test_an_error_ends_all_that_is_under_way() -> None:
    questions = make_questions([HandwrittenRequest(f"s{number}", "chat", ("hi",), None) for number in range(9)])
    with pytest.raises(ModelError, match="the script has ended"):
        ask(ScriptedModel("Hello!"), questions, together=4)


def test_a_report_as_json_and_as_tables() -> None:
    model = ScriptedModel(*script_of(list(draw_examples(1, 40, held_out=True))))
    report = asyncio.run(evaluate(model, ONE_AT_A_TIME))
    told = json.loads(json.dumps(report.as_json()))
    assert (told["model"], told["seed"], "failures" in told) == ("scripted", 1, False)
    (table,) = told["tables"]
    assert sum(row["n"] for row in table["rows"]) == table["total"]["n"] == 40
    assert table["total"]["both"] == {"right": 40, "share": 1.0, "low": pytest.approx(0.91238, abs=1e-5), "high": 1.0}
    console = Console(width=120, file=io.StringIO())
    for shown in make_rich_tables(report):
        console.print(shown)
    text = console.file.getvalue()
    assert HELD_OUT in text
    assert "100.0% (91.2 to 100.0)" in text


def test_kinds_come_in_the_order_of_the_templates() -> None:
    table = make_table("t", [("turns", RIGHT), ("chat", ONLY_CALL), ("symbols", WRONG), ("chat", RIGHT)])
    assert [(row.kind, row.n) for row in table.rows] == [("symbols", 1), ("chat", 2), ("turns", 1)]
    total = table.total
    assert [total.right_call.right, total.right_answer.right, total.both.right] == [3, 2, 2]


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_ends_where_the_share_would_lie_1_96_deviations_off(numbers) -> None:
    share = Share(*numbers)
    low, high = share.interval
    assert 0 <= low <= share.share <= high <= 1
    for end in (low, high):
        assert (share.share - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / share.n, abs=1e-9)


def test_an_interval_of_none_of_ten() -> None:
    assert Share(0, 10).interval == (0.0, pytest.approx(1.959964**2 / (10 + 1.959964**2)))
    assert Share(0, 0).interval == (0.0, 1.0)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("12 - 5 is 7.", ["12", "5", "7"]),
        ("12-5 is 7.50, not -8", ["12", "5", "7.5", "-8"]),
        ("-$1,234.50 or $-3 or €4", ["-1234.5", "-3", "4"]),
        ("1,234,567 apples, 1,23", ["1234567", "1", "23"]),
        ("20% of (-3) and −9", ["20", "-3", "-9"]),
        ("b4nana v2.5", []),
    ],
)
def test_numbers_in_a_reply(text, numbers) -> None:
    assert find_numbers(text) == [Fraction(number) for number in numbers]


@given(st.decimals(-(10**12), 10**12, places=2))
def test_a_number_is_found_however_it_is_written(value) -> None:
    for written in (f"{value}", f"{value:,}", f"{value:,}00", f"{value}%", f"${value:,}"):
        assert find_numbers(f"That makes {written}.") == [Fraction(value)]
        assert states_answer(f"It is {written}.", str(value.normalize()), "words")


def test_settings_that_ask_for_nothing_or_for_what_is_never_shown() -> None:
    with pytest.raises(SettingsError, match="nothing to ask"):
        run_evaluation(EvaluationSettings(count=0))
    for phrasings in ("final", "held-out"):
        with pytest.raises(SettingsError, match="never shown"):
            run_evaluation(EvaluationSettings(phrasings=phrasings, failures=True))
    with pytest.raises(ValidationError):
        EvaluationSettings(count=-1)


def test_a_folder_may_be_given_as_to_other_commands(tmp_path) -> None:
    assert EvaluationSettings(model=f"local:{tmp_path}").model == tmp_path
    assert EvaluationSettings(model=tmp_path).model == tmp_path
    assert EvaluationSettings().model is None


def test_a_folder_without_a_model_is_named(tmp_path) -> None:
    with pytest.raises(ModelError, match=r"config\.json is missing"):
        run_evaluation(EvaluationSettings(model=tmp_path))


@pytest.mark.parametrize("name", ["steering", "final"])
def test_the_lists_are_read_whole(name) -> None:
    phrasings = read_calculator_requests(name)
    assert len(phrasings) >= 300
    assert {question.kind for question in make_questions(phrasings)} >= {"symbols", "reverse", "refusal"}


def test_held_out_problems_are_the_same_for_a_seed() -> None:
    first, second, other = ([question.prompts for question in draw_held_out_questions(20, seed)] for seed in (1, 1, 2))
    assert first == second != other
