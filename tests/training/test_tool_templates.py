"""Files of tool templates: what is read from them, and what is refused, with its line."""

from ferrule.training.synth.tool_use.template_parsing import parse_tool_templates
from ferrule.training.synth.tool_use.templates import TemplateSlot, ToolTemplate, ValueType, find_parameters
from tables import each_case

FORECAST = """\
# a comment
== forecast
domain: weather
name: get_weather | weather
about: Weather forecast for a city. | Says what the weather will be.
days: int 2..14 = 1; also day_count, n_days
city: str from city; also place
unit: "celsius" | "fahrenheit" = "celsius"
alerts: bool = False
tags: list[str] from [wind; sea = level] = None
result: {"temperature": <int -10..38>, "sky": "<sunny; light rain>", "days": {days}}
result: <Sunny; Rain>, <float -5..35.5> degrees in {city}.
error: no such place: {city}
---
what's the weather (like |)in {city}
forecast for {city} in {unit=fahrenheit: (american |)fahrenheit}, {days} days ({tags})
weather {city}, {alerts=True: with alerts}
? weather for the next {days} days
"""


def parse(text: str) -> tuple[list[ToolTemplate], list[str]]:
    tools, problems = parse_tool_templates({"t.txt": text})
    return tools, list(map(str, problems))


def test_a_tool_is_read_whole() -> None:
    (tool,), problems = parse(FORECAST)
    assert not problems
    assert (tool.section, tool.domain, tool.names) == ("forecast", "weather", ("get_weather", "weather"))
    assert [parameter.name for parameter in tool.parameters] == ["city", "days", "unit", "alerts", "tags"]
    days = tool.get_parameter("days")
    assert (days.low, days.high, days.default, days.required) == (2, 14, 1, False)
    assert days.other_names == ("day_count", "n_days")
    assert tool.get_parameter("unit").type == ValueType("str", options=("celsius", "fahrenheit"))
    assert tool.get_parameter("tags").source == ("wind", "sea = level")
    assert tool.get_parameter("tags").type.is_list
    assert [result.is_json for result in tool.results] == [True, False]
    assert [phrasing.is_incomplete for phrasing in tool.phrasings] == [False, False, False, True]
    assert find_parameters(tool.phrasings[1].node) == {"city", "unit", "days", "tags"}
    assert "(" in tool.phrasings[1].node[-3]
    assert tool.phrasings[1].node[-2] == TemplateSlot("tags")


@each_case(
    ("old", "new", "problem"),
    [
        ("domain: weather\n", "", "t.txt:2: tool 'forecast' has no 'domain:'"),
        ("get_weather |", "get weather |", "t.txt:4: 'get weather' is no name of a tool"),
        ("str from city", "string from city", "t.txt:7: unknown type 'string'"),
        ("str from city", "str from town", "t.txt:7: unknown source 'town'"),
        ("also place", "also from", "t.txt:7: 'from' is a keyword of Python"),
        ("2..14", "14..2", "t.txt:6: the range 14..2 is empty"),
        ("= 1;", "= one;", "t.txt:6: 'one' is no int"),
        ('= "celsius"', '= "kelvin"', "t.txt:8: '\"kelvin\"' is none of 'celsius', 'fahrenheit'"),
        ("= False", "= 0", "t.txt:9: '0' is no bool"),
        ('"<sunny; light rain>"', "<sunny; light rain>", "t.txt:11: no JSON when filled"),
        ("<Sunny; Rain>", "<Sunny>", "t.txt:12: <Sunny> is neither a range"),
        ("place: {city}", "place: {town}", "t.txt:13: {town} is no parameter"),
        ("like |)in {city}", "like |)there", "t.txt:15: {city}: required, but not always in this line"),
        ("like |)", "like |", "t.txt:15: the '(' at column"),
        ("fahrenheit:", "kelvin:", "t.txt:16: 'kelvin' is none of"),
        ("{alerts=True: with alerts}", "{alerts}", "t.txt:17: {alerts}: a bool is said in words"),
        ("with alerts}", "with alerts", "t.txt:17: the '{' at column"),
        ("? weather for", "? {city} for", "t.txt:18: begins with ?, but lacks no required argument"),
        ("# a comment", "a comment", "t.txt:1: no part of a tool"),
    ],
)
def test_a_problem_is_reported_with_its_line(old: str, new: str, problem: str) -> None:
    assert old in FORECAST
    _, problems = parse(FORECAST.replace(old, new))
    assert len(problems) == 1
    assert problems[0].startswith(problem)
