"""What a call of an offered tool may be: what fits its signature. And what an expression may be, that is no call."""

from __future__ import annotations

import json

from grammar_checks import is_in, spec_of
from hypothesis import given
from hypothesis import strategies as st

from ferrule.conversation import ToolCall
from ferrule.dialects import get_dialect
from ferrule.dialects.call_grammar import make_call_grammar
from ferrule.dialects.notations.expression import make_expression_grammar
from ferrule.toolspec import ToolSpec
from tables import each_case

DIALECT = get_dialect("nanochat-tools")
FORECAST = ToolSpec(
    "forecast",
    "",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 1},
            "unit": {"enum": ["celsius", "a.b", 3], "default": "celsius"},
            "share": {"type": "number"},
            "alerts": {"type": "boolean", "default": False},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["city", "share"],
    },
)
GIVEN = st.fixed_dictionaries(
    {"city": st.text(max_size=12), "share": st.integers(-99, 99) | st.floats(-1e6, 1e6).map(lambda x: round(x, 3))},
    optional={
        "days": st.integers(-(10**12), 10**12),
        "unit": st.sampled_from(["celsius", "a.b", 3]),
        "alerts": st.booleans(),
        "tags": st.lists(st.text(max_size=6), max_size=3),
    },
)


@given(GIVEN)
def test_a_call_that_fits_the_signature_is_in_the_grammar(given_arguments):
    in_order = {name: given_arguments[name] for name in FORECAST.parameters["properties"] if name in given_arguments}
    written = DIALECT.write_call(ToolCall("1", "forecast", json.dumps(in_order)))
    assert is_in(make_call_grammar(FORECAST), written)


@each_case(
    "written",
    [
        "forecast()",
        'forecast(city="Oslo")',
        'forecast(share=1.5, city="Oslo")',
        'forecast(city="Oslo", share="1")',
        'forecast(city="Oslo", share=1, days=1.5)',
        'forecast(city="Oslo", unit="axb", share=1)',
        'forecast(city="Oslo", unit=celsius, share=1)',
        'forecast(city="Oslo", share=1, alerts=true)',
        'forecast(city="Oslo", share=1, tags=["a", 2])',
        'forecast(city="Oslo", share=1, tags=["a",])',
        'forecast(city="Oslo", share=1, color="red")',
        'forecast(city="Oslo", share=1',
        'forecast(city="Oslo, share=1)',
        "forecast(city='Oslo', share=1)",
    ],
)
def test_a_call_that_does_not_is_not(written):
    assert not is_in(make_call_grammar(FORECAST), written)


def test_optional_arguments_may_all_be_left_out():
    grammar = make_call_grammar(spec_of({"a": {"type": "integer"}, "b": {"type": "boolean"}, "c": {}}))
    fitting = ["f()", "f(a=1)", "f(b=True)", "f(a=1, b=False)", 'f(a=1, c="x")', 'f(b=True, c="")', 'f(c="\\"")']
    assert all(is_in(grammar, written) for written in fitting)
    assert not any(is_in(grammar, written) for written in ["f(, a=1)", "f(b=True, a=1)", "f(a=1,)"])
    assert is_in(make_call_grammar(spec_of({})), "f()")


@each_case(
    "expression",
    [
        "12 * (3 + 4)",
        "((1))",
        '"strawberry".count("r")',
        '"a=b()".count("=")',
        "'it\\'s'[::-1]",
        "len( 'é' )",
        '(len("ab") + len("c"))',
        '"ab".count("b" * (1))',
        "1_000 * 2.5e3 + 1E-3",
    ],
)
def test_an_expression_is_one_and_no_call(expression):
    assert is_in(make_expression_grammar(), expression)


@each_case(
    "call",
    [
        "get_weather()",
        'get_weather( city="Oslo")',
        "f(a=1)",
        "f( )",
        "1 = 1",
        "",
        "find(città",
        "len()",
        "x + 1",
        "count_stock",
        "e",
        "_",
        '"a".count()',
        "len",
    ],
)
def test_a_call_by_name_is_no_expression(call):
    assert not is_in(make_expression_grammar(), call)
