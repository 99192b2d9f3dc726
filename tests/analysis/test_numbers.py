"""Matches numbers of answers to the outputs that they came from."""

import json
import math
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_numbers import compare

from ferrule.analysis.numbers.finding import find_numbers
from ferrule.analysis.numbers.matching import MOST_NUMBERS, SourceIndex, match_numbers
from ferrule.analysis.numbers.source_numbers import NumberSource
from ferrule.analysis.numbers.sources import collect_sources
from ferrule.analysis.result import TaskExecution
from tables import each_case

FOLDER = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("numbers_labelled", 0.99),
        ("numbers_labelled_second", 0.99),
        ("numbers_labelled_unseen", 0.96),
        ("numbers_labelled_fourth", 0.97),
        ("numbers_labelled_held_out", 0.91),
    ],
)
def test_labelled_answers(name: str, least: float) -> None:
    rates = compare(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))
    assert min(rates.precision, rates.recall) >= least, rates.differences


@each_case(
    ("text", "value"),
    [
        ("12.3%", 12.3),
        ("12.3 percent", 12.3),
        ("$1.2M", 1.2e6),
        ("$5m", 5e6),
        ("€3bn", 3e9),
        ("45k", 45e3),
        ("3 million", 3e6),
        ("two million", 2e6),
        ("forty-two percent", 42),
        ("twelve", 12),
        ("1,234,567.8", 1234567.8),
        ("1'234'567", 1234567),
        ("1’234", 1234),
        ("1\u2009234\u2009567", 1234567),
        ("1\u202f234", 1234),
        ("1 234 567", 1234567),
        ("12 000", 12000),
        ("12 500", 12500),
        ("12\u202f500", 12500),
        ("€182 340", 182340),
        ("3½", 3.5),
        ("2½ %", 2.5),
        ("−1½", -1.5),
        ("3⅓ million", 10e6 / 3),
        ("2/3", 2 / 3),
        ("7/12 of them", 7 / 12),
        ("1.234.567", 1234567),
        ("1.234,56", 1234.56),
        ("12,34,567", 1234567),
        ("-5", -5),
        ("−5", -5),
        ("–5", -5),
        ("-$5", -5),
        ("$−5", -5),
        ("1.2e-05", 1.2e-5),
        ("1.2 × 10^-5", 1.2e-5),
        ("1.2×10⁻⁵", 1.2e-5),
        ("1.2 \\times 10^{-5}", 1.2e-5),
        ("10⁻⁵", 1e-5),
        (".5", 0.5),
        ("0,123", 0.123),
        ("15:1", 15),
    ],
)
def test_how_a_number_is_written(text: str, value: float) -> None:
    (found,) = find_numbers(f"It is {text}, they say.")
    assert found.text.replace("\u00a0", " ") == text.removesuffix(" of them")
    assert found.value == pytest.approx(value)


@each_case(
    ("text", "role"),
    [
        ("2023", "year"),
        ("FY2023", "year"),
        ("1990s", "year"),
        ("2024-05-01", "year"),
        ("May 5, 2024", "year"),
        ("10:30", "year"),
        ("1st", "ordinal"),
        ("Q3", "ordinal"),
        ("2000 customers", "quantity"),
        ("n = 2000", "quantity"),
        ("we sold 1950", "quantity"),
        ("built in 3622–3371 BC", "year"),
        ("a run 11 s long", "quantity"),
        ("it opened in 1950", "year"),
    ],
)
def test_years_and_ordinals(text: str, role: str) -> None:
    assert next(number.role for number in find_numbers(f"It is so, {text}.")) == role


@each_case("text", ["COVID-19", "x2", "float64", "GPT-4", "H2O", "Python 3.12", "version 1.4.2", "S&P 500"])
def test_a_name_with_digits_is_no_number(text: str) -> None:
    assert find_numbers(f"It is {text}.") == []


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("In Table 3 412 rows are left", ["3", "412"]),
        ("steps 3 and 5 keep 90.5%", ["3", "5", "90.5%"]),
        ("A 120 818.44 19.02", ["120", "818.44", "19.02"]),
        ("on 5 May 120 came", ["5 May", "120"]),
        ("rated 4/5 stars, open 24/7", ["4", "5", "24", "7"]),
        ("it is 1/8, or 3/8", ["1/8", "3/8"]),
        ("ages 16..91", ["16", "91"]),
    ],
)
def test_what_is_several_numbers(text: str, numbers: list[str]) -> None:
    assert [number.text for number in find_numbers(text)] == numbers


def test_items_of_a_list_are_listed() -> None:
    answer = "1. North: 4.5\n2. South: 3.5\n\nSee step 2, Table 3 and [1]."
    assert [number.text for number in find_numbers(answer) if number.role == "ordinal"] == ["1", "2", "2", "3", "1"]


@each_case(
    ("answer", "output", "kind"),
    [
        ("a share of 12.3%", "share 0.12345", "computed"),
        ("a share of 12.3%", "share 12.3456", "computed"),
        ("a share of 12.3%", "share 0.1246", "not computed"),
        ("a share of 0.123", "share 12.3%", "computed"),
        ("a mean of 12.31", "mean 12.3", "not computed"),
        ("sales fell by 4.2%", "change -0.042", "computed"),
        ("sales rose by 4.2%", "change -0.042", "not computed"),
        ("COGS of $1,270", "COGS -1270.0", "computed"),
        ("COGS: ($1,270)", "COGS -1270.0", "computed"),
        ("a result of $(1,270)", "result -1270.0", "computed"),
        ("revenue ($1,270)", "revenue 1270", "computed"),
        ("Costs: 1,270", "COGS -1270.0", "computed"),
        ("Opex cost us $915", "Opex -915.0", "computed"),
        ("costs of 1.27k", "COGS -1270.0", "computed"),
        ("a profit of $1,270", "profit -1270.0", "not computed"),
        ("expenses rose by $915", "change -915.0", "not computed"),
        ("it grew by 18.4%, having dropped before", "Opex -0.184", "not computed"),
        ("it fell by 4.2%", "COGS 0.042", "not computed"),
        ("it fell by 4.2%", "a drop of 0.042", "computed"),
        ("it is down to 60%", "ratio 0.6", "computed"),
        ("40% of them", "2024: 40", "not computed"),
        ("40% of them", "percent: 40", "computed"),
        ("1/8 of them", "share 0.125", "computed"),
        ("about 1,200 rows", "rows: 1,163", "computed"),
        ("1,200 rows", "rows: 1,163", "not computed"),
        ("４６ rows", "rows: 17", "not computed"),
        ("9007199254740992 rows", "rows: 9007199254740993", "not computed"),
        ("9,007,199,254,740,993 rows", "rows: 9007199254740993", "computed"),
        ("４６．５％ of rows", "share 0.465", "computed"),
        ("a share of ٤٦", "share 46", "computed"),
        ("p < 0.001", "p-value: 3.2e-09", "computed"),
        ("p < 0.001", "p-value: 0.0032", "not computed"),
        ("a 95% confidence interval", "R2 0.9532", "not computed"),
        ("revenue of $1.2M", "revenue in thousands: 1204.5", "computed"),
        ("revenue of 412,000 euros", "revenue 412331.5", "computed"),
        ("revenue of 413,000 euros", "revenue 412331.5", "not computed"),
        ("a median of 4.12 ms", "median_us 4120", "computed"),
        ("a median of 4.12 s", "median_us 4120", "not computed"),
        ("a median of 4.12 ms", "median 4120", "not computed"),
        ("a clearance of 1.29 µg/L", "clearance ng/mL 1288.4", "not computed"),
        ("2/3 of the users stay", "users who stay: 0.6667", "computed"),
        ("2½ % of the flights", "flights cancelled: 8255 (2.45%)", "computed"),
        ("3½ % of the flights", "flights cancelled: 8255 (3.0%)", "not computed"),
        ("49% are women", "age 30-49: 0.2964", "not computed"),
        ("Q3 was best", "quarter 3", "ordinal"),
    ],
)
def test_when_a_number_is_the_same(answer: str, output: str, kind: str) -> None:
    (link,) = match_numbers(answer, [NumberSource("t1", "run", output)])
    assert (link.kind, link.source) == (kind, "t1" if kind in {"computed", "ordinal"} else None) or kind == "ordinal"


def test_a_whole_number_of_a_table_is_no_percentage() -> None:
    (link, _) = match_numbers("40% of 2024", [NumberSource("t1", "run", "2024: 40", values=(40.0,))])
    assert link.source is None


@pytest.mark.parametrize("date", ["2024-03-31", "31 March 2024", "March 31, 2024", "31/03/2024", "31.03.2024"])
def test_a_date_is_that_of_a_source_with_the_same_day(date: str) -> None:
    other, same = NumberSource("t1", "run", "2024-03-05, 2024"), NumberSource("t2", "run", "2024-03-31 00:00:00")
    assert [link.source for link in match_numbers(f"It peaked on {date}.", [other])] == [None]
    assert [link.source for link in match_numbers(f"It peaked on {date}.", [other, same])] == ["t2"]


def test_full_values_count_also_where_the_text_shows_them_rounded() -> None:
    (link,) = match_numbers("a mean of 0.8712", [NumberSource("t1", "run", "mean 0.87", values=(0.87123,))])
    assert link.source == "t1"


def test_the_output_whose_line_speaks_of_the_same_is_the_source() -> None:
    sources = [NumberSource("t1", "run", "median age: 41"), NumberSource("t2", "run", "cities surveyed: 41")]
    assert [link.source for link in match_numbers("All 41 cities were surveyed.", sources)] == ["t2"]
    assert [link.source for link in match_numbers("The median age is 41.", sources)] == ["t1"]


def test_numbers_of_the_question_and_the_profile_are_given() -> None:
    sources = [NumberSource("question", "question", "cut by 10%?"), NumberSource("s.profile", "profile", "500 rows")]
    links = match_numbers("A cut of 10% in 500 rows.", sources)
    assert [(link.kind, link.source) for link in links] == [("given", "question"), ("given", "s.profile")]


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(text: str) -> None:
    numbers = find_numbers(text)
    assert all(first.end <= second.start for first, second in pairwise(numbers))
    assert [link.text for link in match_numbers(text, [NumberSource("t1", "run", text)])] == [
        text[number.start : number.end] for number in numbers
    ]


@given(st.floats(min_value=-1e9, max_value=1e9), st.integers(0, 4))
@settings(max_examples=200, deadline=None)
def test_a_rounded_number_is_found(value: float, digits: int) -> None:
    answer, output = f"The mean is {value:,.{digits}f} here.", f"mean: {value!r}"
    for link in match_numbers(answer, [NumberSource("t1", "run", output)]):
        assert link.kind == "computed" or link.kind == "year" or link.value == 0


_PARTS = st.sampled_from(
    [
        *(str(math.factorial(200)), "9" * 309, "0." + "0" * 400 + "1", "1e300", "10^300", "1e-300", "#" + "8" * 400),
        *(
            "½",
            "0x1F",
            "٣",
            "12 000",
            "1950",
            "Q3",
            "$",
            "%",
            "-",
            "p < ",
            "about ",
            "nearly ",
            " million",
            "\n",
            ". ",
            "x",
            ",",
        ),
    ]
)


@given(st.lists(_PARTS | st.text(max_size=9), max_size=12).map("".join), st.lists(_PARTS, max_size=12).map("".join))
@settings(max_examples=300, deadline=None)
def test_no_text_is_an_error(answer: str, output: str) -> None:
    for link in match_numbers(
        answer, [NumberSource("t1", "run", output), NumberSource("question", "question", answer)]
    ):
        assert math.isfinite(link.value)


def test_numbers_with_more_digits_than_a_float_has() -> None:
    computed, invented = str(math.factorial(200)), str(math.factorial(199))
    (link,) = match_numbers(f"200! is {int(computed):,}.", [NumberSource("t1", "run", computed)])[-1:]
    assert link.source == "t1"
    (link,) = match_numbers(f"200! is {int(computed) + 1:,}.", [NumberSource("t1", "run", computed)])[-1:]
    assert link.source is None
    assert match_numbers(invented, [NumberSource("t1", "run", computed)])[0].source is None


_PROFILE = """\
tables["sales"]: 60 rows, 3 columns, from "sales.csv"
- "region": text; 3 distinct; 4 to 5 characters
- "units": integer; 1 missing; 35 distinct; 1 to 57; mean 31.2333; standard deviation 15.5328; quantiles \
(5, 25, 50, 75, 95 %) 7.95, 18, 31, 43.25, 55
- "discount": number; 12 distinct; 0.02 to 0.31; mean 0.1234; standard deviation 0.0712; quantiles \
(5, 25, 50, 75, 95 %) 0.03, 0.05, 0.12, 0.17, 0.29
- "revenue": number; 53 distinct; 5.8 to 78.3; mean 39.68; standard deviation 16.4591; quantiles \
(5, 25, 50, 75, 95 %) 9.495, 28.075, 41.45, 51.325, 62.57"""
"""What models are shown of a small table."""


@pytest.mark.parametrize(
    "sentence",
    [
        "It grew {}%.",
        "Revenue fell by {}%.",
        "The churn is {}%.",
        "West sold {}% more units than East.",
        "The discount of West is {}%.",
        "Discounts rose by {}%.",
    ],
)
def test_an_invented_percentage_is_in_no_profile(sentence: str) -> None:
    index = SourceIndex([NumberSource("sales.profile", "profile", _PROFILE)])
    given_ones = [at for at in range(1, 101) if index.match(sentence.format(at))[0].source]
    assert len(given_ones) <= 1, given_ones


@pytest.mark.parametrize(
    "answer",
    [
        "The mean discount is 12.3%.",
        "The highest discount is 31%.",
        "Discounts lie between 2% and 31%.",
        "The median discount is 12%.",
        "All 60 rows were used.",
        "The mean of units is 31.2.",
        "Revenue is 5.8 at least.",
    ],
)
def test_what_a_profile_says_is_given(answer: str) -> None:
    links = match_numbers(answer, [NumberSource("sales.profile", "profile", _PROFILE)])
    assert {link.kind for link in links} == {"given"}


def _measure_matching(answer: str) -> float:
    """The seconds of processor time that it takes to match an answer to an output of the same numbers, at best."""
    output = answer.replace(", ", "\n")
    times = []
    for _ in range(2):
        begun = time.process_time()
        match_numbers(answer, [NumberSource("t1", "run", output)])
        times.append(time.process_time() - begun)
    return min(times)


@pytest.mark.parametrize("piece", ["West is {:.2f}, ", "share {:.0f}%. "])
def test_eight_times_the_numbers_take_far_less_than_the_square_of_it(piece: str) -> None:
    short, long = ("".join(piece.format(at * 1.37 % 900) for at in range(amount)) for amount in (150, 1200))
    assert _measure_matching(long) < 24 * _measure_matching(short)


def test_what_is_looked_at_of_a_very_long_answer() -> None:
    links = match_numbers("7 " * 7_000, [NumberSource("t1", "run", "7 8 " * 2_000)])
    assert len(links) == MOST_NUMBERS
    assert {link.source for link in links} == {"t1"}


def test_only_a_task_that_ran_code_computes() -> None:
    tasks = [
        TaskExecution("t1", "knowledge_retriever", "How far is it?", result="It is 384,400 km away."),
        TaskExecution("t2", "py_executor", "How long does it take?", output="9.61", value={"days": [9.6123, True]}),
        TaskExecution("t3", "py_executor", "And back?", status="failed", result="no result: 77"),
    ]
    sources = collect_sources("How long?", {"orbits": "12 rows"}, tasks)
    links = match_numbers("It takes 9.612 days for 384,400 km, not 77, in 12 rows.", sources)
    assert [(link.kind, link.source) for link in links] == [
        ("computed", "t2"),
        ("stated", "t1"),
        ("not computed", None),
        ("given", "orbits.profile"),
    ]


def test_checks_notes_and_row_labels_compute_nothing() -> None:
    table = {"columns": ["rate"], "rows": [[10.7], [11.2]], "index": [5, 6], "total_rows": 2}
    result = "rate\n5 10.7\n6 11.2\n\nChecks of the result:\n- FAILED: a rate above 33\n\nNote: 52,000 is nobody's"
    tasks = [TaskExecution("t1", "py_executor", "How many convert?", result=result, value=table)]
    links = match_numbers("11.2% convert, 10.7 before; 33% of 52,000 left after 5.", collect_sources("", {}, tasks))
    assert [link.kind for link in links] == ["computed", "computed", *["not computed"] * 3]


@pytest.mark.parametrize(
    ("answer", "source"), [("A summer slump of 5% is usual.", "t2"), ("West grew by 5%.", "t1"), ("It is 5%.", "t1")]
)
def test_code_comes_before_what_a_model_wrote_unless_it_speaks_of_something_else(answer: str, source: str) -> None:
    sources = [
        NumberSource("t1", "run", "growth West 0.05"),
        NumberSource("t2", "model", "A summer slump of 5% is common; West grew by 5%, too."),
    ]
    assert [link.source for link in match_numbers(answer, sources)] == [source]
