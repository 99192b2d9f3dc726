"""Many tools: the model is offered a search, and then what it found."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ferrule import Policy, Rule, Tool, ToolCall, ToolRegistry, calculator, model
from ferrule.agent.tool_search import FEW, LARGE, MANY, NAME, LazyTools, ToolIndex, is_large
from ferrule.conversation import Conversation
from ferrule.errors import RegistryError
from ferrule.events import Event
from ferrule.models.scripted import ScriptedModel
from ferrule.tools.registry import BoundRegistry
from ferrule.toolspec import ToolSpec

BFCL = Path(__file__).parents[3] / "shared" / "vectors" / "bfcl"
THINGS = ["invoice", "calendar", "mailbox", "ticket", "printer", "camera", "garden", "kitchen", "library", "harbour"]
DEEDS = ["open", "close", "list", "rename", "archive", "publish", "measure", "repair", "count", "lock"]
DEEDS += ["copy", "paint", "weigh", "sell", "rent", "clean", "tag", "sort", "merge", "split"]


def made(name: str, description: str, extra: str = "") -> Tool:
    parameters = {"type": "object", "properties": {"which": {"type": "string", "description": f"Which one{extra}"}}}
    return Tool.from_schema(name, description, parameters, lambda which="": f"{name} {which}".strip(), read_only=True)


def many() -> list[Tool]:
    """200 tools."""
    return [made(f"{deed}_{thing}", f"{deed.title()} the {thing} that is named.") for thing in THINGS for deed in DEEDS]


class Watched(ScriptedModel):
    """A scripted model that keeps what it was offered."""

    def __init__(self, *script: object) -> None:
        super().__init__(*script)  # type: ignore[arg-type]
        self.offers: list[tuple[str, ...]] = []

    def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: object
    ) -> AsyncGenerator[Event, None]:
        self.offers.append(tuple(tool.name for tool in tools))
        return super().stream(conversation, tools, settings)  # type: ignore[arg-type]


def search(call_id: str, query: str, limit: int = 2) -> ToolCall:
    return ToolCall(call_id, NAME, json.dumps({"query": query, "limit": limit}))


async def test_a_model_searches_and_then_calls() -> None:
    scripted = Watched(
        search("a", "repair a printer", 1),
        ToolCall("b", "repair_printer", '{"which": "red"}'),
        search("c", "selling cameras"),
        "Repaired.",
    )
    run = await model(scripted).chat("The printer is broken.").using(*many()).run()
    results = [message.result for message in run.conversation.messages if message.role == "tool"]
    assert [result.status for result in results] == ["ok", "ok", "ok"]
    assert results[1].text == "repair_printer red"
    found = json.loads(results[0].text.splitlines()[1])
    assert (found["name"], found["description"]) == ("repair_printer", "Repair the printer that is named.")
    assert found["parameters"]["properties"]["which"]["type"] == "string"
    assert scripted.offers[0] == (NAME,)
    assert scripted.offers[1:3] == [(NAME, "repair_printer")] * 2
    # What was offered stays, in its place.
    assert scripted.offers[3][:3] == (NAME, "repair_printer", "sell_camera")


async def test_a_resumed_conversation_is_offered_the_same() -> None:
    first = Watched(search("a", "repair a printer", 3), "Which one?")
    run = await model(first).chat("The printer is broken.").using(*many()).run()
    again = Watched("Still: which one?")
    await model(again).chat(run.conversation).chat("Go on.").using(*many()).run()
    assert again.offers == [first.offers[-1]]


async def test_a_tool_that_was_not_offered_yet_runs_and_is_offered_from_then_on() -> None:
    scripted = Watched([ToolCall("a", "lock_garden", "{}"), ToolCall("b", "lock_gardens", "{}")], "Locked.")
    run = await model(scripted).chat("Lock it.").using(*many()).run()
    results = [message.result for message in run.conversation.messages if message.role == "tool"]
    assert [result.status for result in results] == ["ok", "unknown_tool"]
    assert "lock_garden" in results[1].text
    assert scripted.offers == [(NAME,), (NAME, "lock_garden")]


async def test_a_search_that_finds_nothing_says_so() -> None:
    scripted = Watched(search("a", "xylophone"), "No.")
    run = await model(scripted).chat("Play.").using(*many()).run()
    assert run.conversation.messages[2].result.text == "No tool fits 'xylophone'. Search again in other words."
    assert scripted.offers[1] == (NAME,)


@pytest.mark.parametrize(
    ("count", "extra", "lazy", "is_lazy"),
    [
        (MANY, "", "auto", False),
        (MANY + 1, "", "auto", True),
        (MANY + 1, "", False, False),
        (3, "", True, True),
        (FEW + 1, "x" * (LARGE // FEW), "auto", True),
        (FEW, "x" * LARGE, "auto", False),
    ],
)
async def test_when_tools_are_searched_for(count: int, extra: str, lazy: object, is_lazy: bool) -> None:
    tools = [made(f"tool_{number}", "Does something.", extra) for number in range(count)]
    scripted = Watched("Hi.")
    await model(scripted).chat("Hi").using(*tools, lazy=lazy).run()
    assert scripted.offers == [(NAME,) if is_lazy else tuple(tool.name for tool in tools)]


async def test_a_tool_that_must_be_called_is_offered() -> None:
    scripted = Watched(ToolCall("a", "lock_garden", "{}"), "Locked.")
    await model(scripted).chat("Lock it.").using(*many(), choice="lock_garden").run()
    assert scripted.offers[0] == (NAME, "lock_garden")


async def test_tools_that_are_always_offered_are_neither_counted_nor_searched_for() -> None:
    own = [replace(made(f"paint_{number}", "Paint the printer."), always_offered=True) for number in range(MANY)]
    scripted = Watched(search("a", "repair a printer"), "Hi.")
    run = await model(scripted).chat("Hi").using(*own, *many()).run()
    names = tuple(tool.name for tool in own)
    assert scripted.offers[0] == (NAME, *names)
    found = run.conversation.messages[2].result.text
    assert "repair_printer" in found
    assert not any(f'"{name}"' in found for name in names)
    few = Watched("Hi.")
    await model(few).chat("Hi").using(*own, *many()[:MANY]).run()
    assert len(few.offers[0]) == 2 * MANY


async def test_the_search_is_a_call_like_any_other() -> None:
    scripted = Watched(search("a", "repair a printer"), "I may not search.")
    policy = Policy((Rule("deny", tool=NAME, reason="no searching"),))
    run = await model(scripted).chat("Hi").using(*many(), policy=policy).run()
    assert run.conversation.messages[2].result.text == "error: denied: no searching"
    assert scripted.offers[1] == (NAME,)


async def test_a_tool_of_that_name_is_in_the_way_only_where_the_search_is_wanted() -> None:
    tools = [*many(), made(NAME, "Mine.")]
    scripted = Watched("Hi.")
    await model(scripted).chat("Hi").using(*tools).run()
    assert len(scripted.offers[0]) == 201
    with pytest.raises(RegistryError, match="rename it, or pass lazy=False"):
        await model(Watched("Hi.")).chat("Hi").using(*tools, lazy=True).run()


async def test_a_model_that_knows_its_tools_is_offered_them() -> None:
    run = await model("embedded").chat("What is 2 * 3?").using(calculator, lazy="auto").run()
    assert run.text == "2 × 3 is 6."


def test_what_is_saved() -> None:
    """The characters of the offers of 200 tools, before and after."""
    bound = BoundRegistry(many())

    def characters(specs: Sequence[ToolSpec]) -> int:
        return sum(len(json.dumps([one.name, one.description, dict(one.parameters)])) for one in specs)

    before, after = characters(bound.specs), characters(LazyTools(bound).select_offers(Conversation()))
    assert is_large(bound)
    assert after * 50 < before


@pytest.mark.skipif(not BFCL.is_dir(), reason="../shared/vectors is missing")
@pytest.mark.parametrize(("file", "in_five"), [("simple_python", 0.9), ("live_simple", 0.75)])
def test_a_question_finds_its_tool_among_all(file: str, in_five: float) -> None:
    """The share of BFCL's questions whose tool is among the five that the question itself finds."""
    entries = [json.loads(line) for line in (BFCL / f"{file}.jsonl").read_text("utf-8").splitlines()]
    specs = {
        function["name"]: ToolSpec(function["name"], function["description"], function["parameters"])
        for entry in entries
        for function in entry["function"]
    }
    index = ToolIndex(tuple(specs.values()))
    asked = [(entry["question"][0][-1]["content"], entry["function"][0]["name"]) for entry in entries]
    hits = sum(name in [spec.name for spec in index.search(question, 5)] for question, name in asked)
    assert hits / len(asked) > in_five, f"{hits} of {len(asked)}, among {len(specs)} tools"


def test_names_of_every_style_are_words() -> None:
    names = ["getUserInfo", "send-mail.v2", "READ_FILE", "wetterAbfragen", "搜索"]
    index = ToolIndex([ToolSpec(name, "", {"type": "object"}) for name in names])
    first: Callable[[str], str] = lambda query: index.search(query, 1)[0].name  # noqa: E731
    assert [first(query) for query in ("user infos", "mail", "read files", "Wetter", "搜索")] == names


def test_a_result_is_never_cut() -> None:
    tools = [made(f"tool_{number}", "Does something long.", "x" * 3000) for number in range(30)]
    lazy = LazyTools(BoundRegistry(ToolRegistry(tools).tools))
    text = lazy.registry.get(NAME)("something long", 20)  # type: ignore[misc]
    assert 10_000 < len(text) < 20_100
    assert all(json.loads(line)["name"] for line in text.splitlines()[1:])
