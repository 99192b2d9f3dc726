"""A number that a sentence calls a bound is computed only if the output lies on the side that is said."""

import pytest

from ferrule.analysis.numbers.finding import find_numbers
from ferrule.analysis.numbers.matching import match_numbers
from ferrule.analysis.numbers.source_numbers import NumberSource
from ferrule.analysis.numbers.sources import collect_sources
from ferrule.analysis.result import TaskExecution
from tables import each_case

WORDINGS = {
    ">": [
        "above {}",
        "more than {}",
        "> {}",
        ">{}",
        "well over {}",
        "is over {}",
        "exceeds {}",
        "exceeded {}",
        "exceeding {}",
        "greater than {}",
        "higher than {}",
        "larger than {}",
        "in excess of {}",
        "beyond {}",
        "surpasses {}",
        "not at most {}",
        "tops {}",
        "above the target of {}",
        "above the {} mark",
        "crosses {}",
        "more than **{}**",
        "**more than** {}",
        "&gt; {}",
        "above a {} share",
    ],
    ">=": [
        "at least {}",
        "≥ {}",
        ">= {}",
        "\\geq {}",
        "upwards of {}",
        "no less than {}",
        "not below {}",
        "isn't under {}",
        "never falls below {}",
        "no fewer than {}",
        "{} or more",
        "at the very least {}",
        "{} at least",
        "{} or higher",
        "{} and above",
        "{}+",
        "greater than or equal to {}",
        "at or above {}",
        "&gt;= {}",
        "**{}** or more",
    ],
    "<": [
        "below {}",
        "under {}",
        "less than {}",
        "fewer than {}",
        "lower than {}",
        "smaller than {}",
        "< {}",
        "<{}",
        "nearly {}",
        "almost {}",
        "just short of {}",
        "just under {}",
        "shy of {}",
        "not even {}",
        "not quite {}",
        "below its {} limit",
        "not at least {}",
        "didn't reach {}",
        "does not reach {}",
        "failed to reach {}",
        "less than a {} chance",
        "**under** `{}`",
        "&lt; {}",
    ],
    "<=": [
        "at most {}",
        "up to {}",
        "≤ {}",
        "<= {}",
        "no more than {}",
        "not more than {}",
        "does not exceed {}",
        "doesn’t exceed {}",
        "not above {}",
        "never over {}",
        "not above the threshold of {}",
        "{} at most",
        "{} or less",
        "{} or lower",
        "{} and below",
        "less than or equal to {}",
        "at or below {}",
        "≤ **{}**",
    ],
    "": ["about {}", "of {}", "reached {}", "not only {}", "more or less {}", "above the {} of West", "{}"],
}
"""By the bound: what a sentence may say with a number."""
NUMBERS = {
    "92%": (0.917, 0.92, 0.923),
    "$1.2M": (1_180_000.0, 1_200_000.0, 1_230_000.0),
    "412,000": (411_700.0, 412_000.0, 412_331.5),
    "1,200": (1199.6, 1200.0, 1200.4),
    "4.12 ms": (4.117, 4.12, 4.123),
    "0.05": (0.0466, 0.05, 0.0534),
}
"""As a sentence has them: an output below it, one that is equal, and one above, all of which may round to it."""


@pytest.mark.parametrize("bound", WORDINGS)
def test_each_wording_is_read_as_its_bound(bound: str) -> None:
    texts = [wording.format(number) for wording in WORDINGS[bound] for number in NUMBERS]
    found = {text: [number.bound for number in find_numbers(f"It is {text}, they say.")] for text in texts}
    assert {text: bounds for text, bounds in found.items() if bounds != [bound]} == {}


@pytest.mark.parametrize("bound", WORDINGS)
def test_an_output_on_the_other_side_of_a_bound_is_not_the_source(bound: str) -> None:
    wrong = []
    for written, outputs in NUMBERS.items():
        expected = {">": (0, 0, 1), ">=": (0, 1, 1), "<": (1, 0, 0), "<=": (1, 1, 0)}.get(bound)
        for wording in WORDINGS[bound]:
            answer = f"The result is {wording.format(written)} here."
            for place, output in enumerate(outputs):
                (link,) = match_numbers(answer, [NumberSource("t1", "run", f"result: {output}", (output,))])
                if expected and (link.kind == "computed") != bool(expected[place]):
                    wrong.append((answer, output, link.kind))
    assert not wrong


P = '{"p_value": 0.0534}'


@each_case(
    ("answer", "output", "kind"),
    [
        ("significant (p < 0.05)", P, "not computed"),
        ("significant (p < 0.05)", '{"p_value": 0.0034}', "computed"),
        ("significant (p ≤ 0.05)", '{"p_value": 0.05}', "computed"),
        ("significant (p < 0.05)", '{"p_value": 0.05}', "not computed"),
        ("significant (p < 0.05)", '{"alpha": 0.05, "p_value": 0.0534}', "not computed"),
        ("not significant (p > 0.05)", P, "computed"),
        ("not significant (p > 0.05)", '{"p_value": 0.03}', "not computed"),
        ("its p-value is below 0.1", P, "computed"),
        ("its p-value is below 0.05", P, "not computed"),
        ("the p-value exceeds 0.05", P, "computed"),
        ("the p-value does not exceed 0.05", P, "not computed"),
        ("significant (p < 5%)", P, "not computed"),
        ("significant (p < 5%)", '{"p_value": 0.03}', "computed"),
        ("p-values below the level of 0.05", P, "not computed"),
        ("both are significant (p < 0.05)", "West p = 0.003\nSouth p = 0.069", "not computed"),
        ("both are significant (p < 0.1)", "West p = 0.003\nSouth p = 0.069", "computed"),
        ("all p-values exceed 0.05", "West p = 0.003\nSouth p = 0.069", "not computed"),
        ("none is significant (p > 0.05)", "West p = 0.3\nSouth p = 0.069", "computed"),
        ("accurate to within 5%", "error 0.0534", "not computed"),
        ("accurate to within 6%", "error 0.0554", "computed"),
        ("accurate to within ±5%", "error 0.0534", "not computed"),
        ("Three quarters are done within 62 days", "75% 62.33", "computed"),
        ("Over 10k users left.", "users 9996", "not computed"),
        ("Over 10k users left.", "users 10004", "computed"),
        ("Over 101,246 km, it rose.", "km 101245.6", "computed"),
        ("0.05 > p", P, "not computed"),
        ("0.1 > p", P, "computed"),
        ("p < 0.05", "t = 3.4, p<0.001", "computed"),
        ("p < 0.0001", "t = 3.4, p<0.001", "not computed"),
        ("p > 0.05", "t = 3.4, p<0.001", "not computed"),
        ("West is significant (p < 0.05)", "West p = 0.003\nSouth p = 0.069", "computed"),
        ("South is significant (p < 0.05)", "West p = 0.003\nSouth p = 0.069", "not computed"),
        ("significant (p < 0.05)", "  region      p\n    West  0.003", "computed"),
        ("significant (p < 0.05)", "p = 0.0534, share 0.012", "not computed"),
        ("accuracy above 92%", '{"accuracy": 0.913}', "not computed"),
        ("accuracy above 91%", '{"accuracy": 0.913}', "computed"),
        ("accuracy not above 92%", '{"accuracy": 0.913}', "computed"),
        ("revenue under 412,000 euros", '{"revenue": 412331}', "not computed"),
        ("revenue under 413,000 euros", '{"revenue": 412331}', "computed"),
        ("revenue over €412,000", '{"revenue": 412331}', "computed"),
        ("used over 413,000 litres", "litres 412331.5", "not computed"),
        ("41% or more", "share 0.408", "not computed"),
        ("30 days or longer", "days >= 30: 12", "computed"),
        ("a mean of it over 681 flights", "F9 21.920705 681", "computed"),
        ("a distance of it over 101,246 km", "km 101245.6", "computed"),
        ("more than 30 days", "days > 30: 12", "computed"),
        ("more than 30 days", "days: 30", "not computed"),
        ("fewer than 30 days", "threshold: 30", "computed"),
        ("sales fell by more than 4%", "change -0.042", "computed"),
        ("sales fell by more than 5%", "change -0.0468", "not computed"),
        ("sales fell by less than 5%", "change -0.0468", "computed"),
        ("a balance below -5", "balance -5.4", "computed"),
        ("a balance above -5", "balance -5.4", "not computed"),
        ("losses of more than $1,200", "loss -1200.4", "computed"),
        ("a margin below 4.12 ms", "median_us 4123", "not computed"),
        ("a margin below 4.13 ms", "median_us 4123", "computed"),
        ("exactly 92%", '{"accuracy": 0.9234}', "not computed"),
        ("precisely 92%", '{"accuracy": 0.92}', "computed"),
        ("nearly 42%", "share 0.4195", "computed"),
        ("nearly 42%", "share 0.4204", "not computed"),
    ],
)
def test_which_output_a_bound_is_computed_by(answer: str, output: str, kind: str) -> None:
    (link,) = match_numbers(answer, [NumberSource("t1", "run", output)])
    assert link.kind == kind


@each_case(
    ("answer", "output", "kinds"),
    [
        ("between 0.01 and 0.05", "p 0.0534", ["not computed"] * 2),
        ("between 92% and 96%", "accuracy 0.9152", ["not computed"] * 2),
        ("between 91% and 92%", "accuracy 0.9152", ["computed"] * 2),
        ("folds between 0.43 and 0.55", "folds from 0.42650 to 0.55025", ["computed"] * 2),
        ("folds between 0.42 and 0.5", "folds 0.42650, 0.41999", ["computed"] * 2),
        ("folds between 0.43 and 0.5", "folds 0.42650", ["not computed", "computed"]),
        ("The p-value is 0.03, well below 0.05.", "p 0.0312", ["computed"] * 2),
        ("The p-value of 0.069 is not below 0.05.", "p 0.0691", ["computed"] * 2),
        ("The p-value is 0.0534, well below 0.05.", "p 0.0534", ["computed", "not computed"]),
        ("p is 0.0534, a share above 0.02", "p 0.0534", ["computed", "not computed"]),
        ("0.953 is above 0.92", "accuracy 0.953\nbaseline 0.9167", ["computed"] * 2),
        ("0.913 is above 0.92", "accuracy 0.913\nbaseline 0.9167", ["computed", "not computed"]),
        ("Of 0.953, it is above 0.92, and", "accuracy 0.953\nbaseline 0.9167", ["computed"] * 2),
        ("0.953 and above 0.92", "accuracy 0.953\nbaseline 0.9167", ["computed", "not computed"]),
        ("45.6, higher than 41.2 in the South", "West 45.6\nSouth 41.17", ["computed"] * 2),
    ],
)
def test_bounds_of_two_numbers(answer: str, output: str, kinds: list[str]) -> None:
    assert [link.kind for link in match_numbers(answer, [NumberSource("t1", "run", output)])] == kinds


def test_a_bound_that_the_question_names_is_given_and_not_computed() -> None:
    tasks = [TaskExecution("t1", "py_executor", "How accurate is it?", value={"accuracy": 0.913})]
    sources = collect_sources("Is the accuracy above 92%?", {}, tasks)
    (link,) = match_numbers("Yes, it is above 92%.", sources)
    assert (link.kind, link.source) == ("given", "question")
    assert [one.kind for one in match_numbers("Yes, it is above 91%.", sources)] == ["computed"]


@each_case(
    ("answer", "output", "kind"),
    [
        ("Sales fell in the third quarter (4.2%)", "change 0.042", "not computed"),
        ("Sales fell in the third quarter (4.2%)", "change -0.042", "computed"),
        ("Sales fell where rates rose (4.2%)", "change 0.042", "computed"),
        ("Sales rose in the third quarter (4.2%)", "growth 0.042", "computed"),
        ("Sales fell to 60%", "change 0.6", "computed"),
        ("a share of 0.5%", "share 0.5", "not computed"),
        ("a share of 50%", "share 0.5", "computed"),
        ("a share of 0.5%", "share_pct 0.5", "computed"),
        ("a rate of 0.5%", "inflation rate 0.5", "computed"),
    ],
)
def test_signs_and_shares_of_a_clause(answer: str, output: str, kind: str) -> None:
    (link,) = match_numbers(answer, [NumberSource("t1", "run", output)])
    assert link.kind == kind
