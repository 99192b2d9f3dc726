"""Which tools a request may mean, by the words that they share with it."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from ferrule.embedded.guide import EmbeddedGuide
from ferrule.embedded.relevance import find_stems, list_relevant_tools
from ferrule.toolspec import ToolSpec
from tables import each_case


def spec(name: str, description: str = "", **properties: dict[str, object]) -> ToolSpec:
    return ToolSpec(name, description, {"type": "object", "properties": properties})


WATER = spec("waterSchedule", "Returns how often a plant needs water.", plant={"type": "string"})
SNOW = spec("snow_report", "Snow depth at a resort.", resort={"description": "name of the ski area"})
STAIN = spec("remove_stain", "", fabric={"enum": ["cotton", "silk"]}, tags={"items": {"enum": ["wine"]}})
ALL = [WATER, SNOW, STAIN]


@each_case(
    ("request_", "names"),
    [
        ("How much watering does my basil need?", ["waterSchedule"]),
        ("how deep is the SNOW", ["snow_report"]),
        ("which ski areas are near", ["snow_report"]),
        ("out of silk please", ["remove_stain"]),
        ("I spilled wine", ["remove_stain"]),
        ("is there snow, and when do I water my plants", ["waterSchedule", "snow_report"]),
        ("and in Lech?", ["waterSchedule", "snow_report", "remove_stain"]),
        ("", ["waterSchedule", "snow_report", "remove_stain"]),
    ],
)
def test_a_tool_is_out_if_another_shares_all_its_words_and_more(request_: str, names: list[str]) -> None:
    assert [one.name for one in list_relevant_tools(request_, ALL)] == names


def test_words_are_found_in_names_of_every_kind() -> None:
    assert find_stems(["getSnowReport_v2 HTTPServer"]) == {"get", "snow", "repo", "v", "2", "http", "serv"}
    assert find_stems(["What is the état of it"]) == {"état"}


def test_a_schema_of_any_shape_is_read() -> None:
    odd = ToolSpec("f", "", {"properties": {"a": True, "b": {"enum": 3, "items": [], "description": None}}})
    assert list_relevant_tools("f", [odd, ToolSpec("g", "", {})]) == [odd]


@each_case(
    ("request_", "is_possible"),
    [
        ("is there snow", False),
        ("is there snow at 1800", False),
        ("how many letters are in snow", True),
        ("snow: 12 and 30 cm, together?", True),
        ("half of the snow", True),
        ("2+2 snow", True),
        ("and in Lech?", True),
        ("", True),
    ],
)
def test_the_calculator_is_out_where_no_expression_is_needed(request_: str, is_possible: bool) -> None:
    calculator = spec("calculator", "Computes.", expression={"type": "string"})
    grammar = repr(EmbeddedGuide().make_grammar([calculator, SNOW], ["x"], request_))
    assert "snow_report" in grammar
    assert ("'.count('" in grammar) is is_possible


@cache
def read_open_requests() -> list[tuple[str, list[ToolSpec], set[str]]]:
    """The requests of the open list with one turn and several foreign tools, and the tools that are right."""
    folder = files("ferrule.embedded") / "phrasings"
    entries = json.loads((folder / "open_tools.json").read_text("utf-8"))["tools"]
    tools = {one["name"]: ToolSpec(one["name"], one["description"], one["parameters"]) for one in entries}
    found = []
    for line in (folder / "open_tools.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        offered = [tools[name] for name in entry["offered"] if name in tools]
        wanted = {call["name"] for call in entry["calls"]} & set(tools)
        if "prompt" in entry and len(offered) > 1 and wanted:
            found.append((entry["prompt"], offered, wanted))
    return found


def test_the_right_tool_of_the_open_list_stays_and_most_others_do_not() -> None:
    asked = read_open_requests()
    kept = [{one.name for one in list_relevant_tools(prompt, offered)} for prompt, offered, _ in asked]
    right = sum(wanted <= names for names, (_, _, wanted) in zip(kept, asked, strict=True))
    assert right / len(asked) > 0.97
    others = sum(len(names - wanted) for names, (_, _, wanted) in zip(kept, asked, strict=True))
    offered_others = sum(len(offered) - len(wanted) for _, offered, wanted in asked)
    assert others / offered_others < 0.1
