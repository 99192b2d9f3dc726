"""The fifth seed's functions as API tools, by the official SDK, of a server that refuses what OpenAI refuses."""

from __future__ import annotations

import json
from typing import Annotated, TypedDict

import pytest
from openai_server import KEY, calls, says, server
from pydantic import Field
from scripted_http import Reply, ScriptedServer

from ferrule import Pipeline, Run, Tool, Toolset, model, tool
from ferrule.conversation import Conversation, user
from ferrule.errors import ArgumentsInvalid, ToolRequired

WEATHER = "🌦 🌡️+6°C 🌬️↘35km/h"
ANSWER = "The weather in London is currently overcast with light rain."
CALL = calls(("call_1", "get_weather", '{"city":"London"}'))


def get_weather(city: Annotated[str, "The city name to get weather for"]) -> str:
    "A tool to get the weather for a location"
    return f"{city.replace(' ', '+')}: {WEATHER}"


def mini(provider: ScriptedServer) -> Pipeline:
    return model("openai:gpt-4o-mini", api_key=KEY, base_url=f"{provider.url}/v1")


async def test_a_function_is_offered_called_and_answered() -> None:
    async with server(CALL, says(ANSWER)) as provider, mini(provider) as pipeline:
        run = await pipeline.chat("How is the weather in london?").using(get_weather).run()
    assert (run.text, run.mode, run.stopped) == (ANSWER, "api", "done")
    first, second = (request.body for request in provider.requests)
    assert first["model"] == "gpt-4o-mini"
    assert first["messages"] == [{"role": "user", "content": "How is the weather in london?"}]
    [offer] = first["tools"]
    assert offer["function"]["name"] == "get_weather"
    assert offer["function"]["description"] == "A tool to get the weather for a location"
    assert offer["function"]["parameters"]["properties"] == {
        "city": {"type": "string", "description": "The city name to get weather for"}
    }
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "tool"]
    [call] = second["messages"][1]["tool_calls"]
    assert call["function"] == {"name": "get_weather", "arguments": '{"city":"London"}'}
    assert second["messages"][2] == {"role": "tool", "tool_call_id": "call_1", "content": f"London: {WEATHER}"}


async def test_an_async_function_is_a_tool_as_well() -> None:
    async def get_weather_soon(city: str) -> str:
        "A tool to get the weather for a location"
        return get_weather(city)

    asked = calls(("call_1", "get_weather_soon", '{"city":"London"}'))
    async with server(asked, says(ANSWER)) as provider, mini(provider) as pipeline:
        run = await pipeline.chat("?").using(get_weather_soon).run()
    assert run.conversation.messages[2].result.text == f"London: {WEATHER}"


class Filters(TypedDict):
    city: Annotated[str | None, Field(description="The city to filter by")]
    age: int | None


def lookup_person(name: Annotated[str, "Full name"], filters: Filters) -> str:
    "Search the database for a person"
    return f"{name}: {filters['city']}, {filters['age']}"


def test_the_schema_of_a_function_with_a_typed_dict() -> None:
    found = Tool.from_callable(lookup_person)
    assert found.name == "lookup_person"
    assert found.description == "Search the database for a person"
    assert found.parameters == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Full name"},
            "filters": {"$ref": "#/$defs/Filters"},
        },
        "required": ["name", "filters"],
        "additionalProperties": False,
        "$defs": {
            "Filters": {
                "type": "object",
                "properties": {
                    "city": {
                        "description": "The city to filter by",
                        "anyOf": [{"type": "string"}, {"type": "null"}],
                    },
                    "age": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                },
                "required": ["city", "age"],
                "additionalProperties": False,
            }
        },
    }


def test_its_arguments_are_validated() -> None:
    found = Tool.from_callable(lookup_person)
    given = {"name": "Ada", "filters": {"city": None, "age": 36}}
    assert found(**found.bind(json.dumps(given))) == "Ada: None, 36"
    with pytest.raises(ArgumentsInvalid, match=r"filters\.age: got the string \"old\"; expected an integer"):
        found.bind({"name": "Ada", "filters": {"city": "London", "age": "old"}})


async def test_wrong_arguments_are_told_to_the_model_which_then_gets_them_right() -> None:
    wrong = calls(("call_1", "lookup_person", '{"name":"Ada","filters":{"town":"London","age":36}}'))
    right = calls(("call_2", "lookup_person", '{"name":"Ada","filters":{"city":"London","age":36}}'))
    async with server(wrong, right, says("Found her.")) as provider, mini(provider) as pipeline:
        run = await pipeline.chat("Who is Ada?").using(lookup_person).run()
    results = [message.result for message in run.conversation.messages if message.role == "tool"]
    assert [result.status for result in results] == ["invalid", "ok"]
    assert "filters.city" in results[0].text
    assert results[1].text == "Ada: London, 36"


class WeatherTool(Toolset):
    name = "weather"
    description = "A tool to get the weather for a location"

    def __init__(self) -> None:
        self.asked: list[str] = []

    @tool
    def get_for_city(self, city: Annotated[str, "The city name to get weather for"]) -> str:
        self.asked.append(city)
        return WEATHER


async def test_a_class_tool_goes_by_the_api_too_and_keeps_its_state() -> None:
    asked = calls(("call_1", "get_for_city", '{"city":"London"}'), ("call_2", "get_for_city", '{"city":"Rome"}'))
    weather = WeatherTool()
    async with server(asked, says("Both.")) as provider, mini(provider) as pipeline:
        await pipeline.chat("?").using(weather).run()
    assert weather.asked == ["London", "Rome"]


async def test_force_is_told_to_the_api_until_a_tool_was_called() -> None:
    async with server(CALL, says(ANSWER)) as provider, mini(provider) as pipeline:
        run = await pipeline.chat("What is the weather in London?").using(get_weather, force=True).run()
    assert run.text == ANSWER
    assert [request.body.get("tool_choice") for request in provider.requests] == ["required", None]


async def test_force_ends_in_an_error_where_no_tool_is_ever_called() -> None:
    async with server(*(says("No.") for _ in range(3))) as provider, mini(provider) as pipeline:
        with pytest.raises(ToolRequired, match="asked 3 times"):
            await pipeline.chat("?").using(get_weather, force=True).within(rounds=3).run()


async def order_of(provider: ScriptedServer, before: bool) -> list[str]:
    """What a `then` sees, added before or after the tools."""
    seen: list[str] = []

    def note(run: Run) -> None:
        seen.append(" ".join(message.role for message in run.conversation.messages))

    async with mini(provider) as pipeline:
        asked = pipeline.chat("?")
        asked = asked.then(note).using(get_weather) if before else asked.using(get_weather).then(note)
        await asked.run()
    return seen


async def test_then_sees_the_run_at_its_place_among_the_tools() -> None:
    script: tuple[Reply, ...] = (CALL, says(ANSWER))
    async with server(*script) as provider:
        assert await order_of(provider, before=True) == ["user assistant"]
    async with server(*script) as provider:
        assert await order_of(provider, before=False) == ["user assistant tool assistant"]


async def test_map_sees_all_runs_at_its_place_and_may_go_on() -> None:
    seen: list[list[str]] = []

    def shorter(runs: list[Run]) -> list[Conversation]:
        seen.append([run.text for run in runs])
        return [run.conversation.add(user("Shorter.")) for run in runs]

    script = (CALL, CALL, says(ANSWER), says(ANSWER), says("Rain."), says("Rain."))
    async with server(*script) as provider, mini(provider) as pipeline:
        runs = await pipeline.chat("?").using(get_weather).map(shorter).run_many(2)
    assert seen == [[ANSWER, ANSWER]]
    assert [run.text for run in runs] == ["Rain.", "Rain."]
