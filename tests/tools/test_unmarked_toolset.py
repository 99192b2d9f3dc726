"""A Toolset without a marked method offers its public ones, as the fourth seed writes its tool classes."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import pytest

from ferrule import RegistryError, ToolCall, ToolDefinitionError, ToolRegistry, Toolset, model, tool
from ferrule.models.scripted import ScriptedModel


class WeatherTool(Toolset):
    name = "weather"
    description = "A tool to get the weather for a location"

    def __init__(self, sky: str = "rain") -> None:
        self.sky = sky
        self.is_open = False

    def open(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    def get_for_city(self, city: Annotated[str, "The city name to get weather for"]) -> str:
        return f"{self.sky} in {self._format(city)}"

    async def count(self) -> int:
        """Count them."""
        return 2

    @staticmethod
    def spell(word: str) -> str:
        return " ".join(word)

    @property
    def _hidden(self) -> str:
        return ""

    def _format(self, city: str) -> str:
        return city.title()


@pytest.mark.parametrize("given", [WeatherTool, WeatherTool("sun"), functools.partial(WeatherTool, "snow")])
async def test_its_public_methods_are_tools(given: Any) -> None:
    registry = ToolRegistry([given])
    assert registry.names == ("get_for_city", "count", "spell")
    spec = registry.specs[0]
    assert spec.parameters["properties"]["city"]["description"] == "The city name to get weather for"
    assert spec.group is not None
    assert (spec.group.name, spec.group.description) == ("weather", "A tool to get the weather for a location")
    calls = [ToolCall("a", "get_for_city", '{"city": "oslo"}'), ToolCall("b", "count", "{}")]
    run = (
        await model(ScriptedModel([*calls, ToolCall("c", "spell", '{"word": "ab"}')], "Ok."))
        .chat("?")
        .using(given)
        .run()
    )
    sky = "rain" if given is WeatherTool else "snow" if isinstance(given, functools.partial) else "sun"
    assert [m.result.text for m in run.conversation.messages if m.role == "tool"] == [f"{sky} in Oslo", "2", "a b"]


def test_the_seeds_native_notation_describes_it() -> None:
    from ferrule.dialects.catalogue import get_notation

    offer = get_notation("native").offer(ToolRegistry([WeatherTool]).only("get_for_city").specs)
    assert '<tool-description name="weather" description="A tool to get the weather for a location">' in offer


def test_a_marked_method_keeps_the_others_out() -> None:
    class Notes(Toolset):
        @tool
        def read(self) -> str:
            return ""

        def helper(self) -> str:
            return ""

    assert [one.name for one in Notes().tools] == ["read"]


def test_inherited_public_methods_are_tools_too() -> None:
    class More(WeatherTool):
        def forecast(self) -> str:
            return ""

    assert [one.name for one in More().tools] == ["get_for_city", "count", "spell", "forecast"]


def test_a_method_that_cannot_be_one_is_named_with_what_to_do() -> None:
    class Helper(Toolset):
        def run(self, *parts: str) -> str:
            return ""

    with pytest.raises(
        ToolDefinitionError, match=r"No method of Helper is marked @tool.* begin the names of the others"
    ):
        ToolRegistry([Helper])


def test_one_without_any_is_refused() -> None:
    class Empty(Toolset):
        def open(self) -> None: ...

    with pytest.raises(RegistryError, match="no method marked @tool, and no public one"):
        ToolRegistry([Empty])
