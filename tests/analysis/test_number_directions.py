"""A sentence that says "rose" of two numbers of which the second is smaller is not certified."""

from ferrule.analysis.numbers.matching import match_numbers
from ferrule.analysis.numbers.source_numbers import NumberSource
from tables import each_case

OUTPUT = (
    '{"q2": 1250340.5, "q3": 1019876.25, "churn": 12.4, "churn_before": 9.1, "hours": 3, "minutes": 45, "low": -8.5}'
)
FALSE = [
    "Revenue rose from 1.25 million to 1.02 million.",
    "Revenue has grown from $1.25M to about $1.02M.",
    "Revenue climbed in the West from $1.25M in Q2 to $1.02M in Q3.",
    "Revenue fell from 1,019,876 to 1,250,340.5.",
    "Churn dropped from 9.1% to 12.4%.",
    "Churn increased from 12.4% in May to 9.1% in June.",
    "It fell, and then rose from 12.4 to 9.1 days.",
]
TRUE = [
    "Revenue fell from 1.25 million to 1.02 million.",
    "Revenue fell from $1.25M in Q2 to $1.02M in Q3.",
    "Churn rose from 9.1% to 12.4%.",
    "The time fell from 3 hours to 45 minutes.",
    "Revenue didn't rise from 1.25 million to 1.02 million.",
    "The West climbed from 12.4 to 9.1 in the ranking.",
    "It rose, then fell from 12.4 to 9.1 days.",
    "Growth from 9.1 to 12.4, a decline from 12.4 to 9.1",
    "It fell from 12.4 to -8.5.",
    "Increased efficiency cut it from 12.4 to 9.1 days.",
    "The increase in staff reduced it from 12.4 to 9.1 days.",
    "Sales rose while churn went from 12.4 to 9.1.",
    "A fall in rates took it from 9.1 to 12.4.",
    "The pace of increase eased from 12.4% to 9.1%.",
]


@each_case("answer", [*FALSE, *TRUE])
def test_a_change_has_the_direction_of_its_two_numbers(answer: str) -> None:
    links = match_numbers(answer, [NumberSource("t1", "run", OUTPUT)])
    kinds = {link.kind for link in links if link.kind != "ordinal"}
    assert kinds == ({"not computed"} if answer in FALSE else {"computed"})
