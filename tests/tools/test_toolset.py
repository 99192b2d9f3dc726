"""What a Toolset says of its tools together."""

from dataclasses import dataclass
from functools import partial

from ferrule.dialects.catalogue import get_notation
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.toolset import Toolset
from ferrule.toolspec import ToolGroup


class Weather(Toolset):
    name = "weather"
    description = "The weather, near and far"

    @tool
    def now(self) -> str:
        """The weather now."""
        return "21 °C"


class Notes(Toolset):
    """Notes, kept for
    as long as a run lasts.

    Not for secrets.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name

    @tool
    def description(self) -> str:
        """A tool that is called as the class might say what it does."""
        return self.name

    def plain(self) -> str:
        """No tool until it is made one."""
        return self.name


@dataclass(slots=True)
class Cards(Toolset):
    left: int = 52

    @tool
    def draw(self) -> int:
        """Draw a card."""
        return self.left


def group_of(item: object) -> ToolGroup | None:
    [spec] = ToolRegistry([item]).specs  # type: ignore[list-item]
    return spec.group


def test_its_own_words_or_its_name_and_docstring() -> None:
    assert group_of(Weather) == ToolGroup("weather", "The weather, near and far")
    assert group_of(Notes) == ToolGroup("Notes", "Notes, kept for as long as a run lasts.")
    assert group_of(Cards) == ToolGroup("Cards", "")


def test_the_same_for_a_class_a_factory_an_instance_and_its_tool() -> None:
    items = (Weather, partial(Weather), Weather(), Weather().now, Weather().tools[0], Tool.from_callable(Notes().plain))
    assert [group.name for group in map(group_of, items) if group] == ["weather"] * 5 + ["Notes"]


async def test_while_open_and_under_other_names() -> None:
    registry = ToolRegistry([Weather, Notes("mine")]).prefixed("my_")
    async with registry.open() as bound:
        assert [(spec.name, spec.group and spec.group.name) for spec in bound.specs] == [
            ("my_now", "weather"),
            ("my_description", "Notes"),
        ]
    assert registry.specs == bound.specs


def test_one_that_inherits_has_a_docstring_of_its_own() -> None:
    class Climate(Weather):
        """The weather of decades."""

    class Diary(Notes):
        pass

    assert group_of(Climate) == ToolGroup("weather", "The weather, near and far")
    assert group_of(Diary) == ToolGroup("Diary", "")


def test_a_function_has_no_group() -> None:
    def shout(text: str) -> str:
        """Say it loudly."""
        return text.upper()

    assert group_of(shout) is None


def test_a_method_without_a_docstring_has_the_description_of_its_class() -> None:
    class Lights(Toolset):
        """The lights of the house."""

        def switch(self, room: str) -> str:
            return room

        def dim(self, room: str) -> str:
            """Dim the lights of a room."""
            return room

    for item in (Lights, Lights()):
        switch, dim = ToolRegistry([item]).specs
        assert (switch.description, dim.description) == ("The lights of the house.", "Dim the lights of a room.")
        offered = ToolRegistry([item]).schemas("openai")
        assert offered[0]["function"]["description"] == "The lights of the house."
        for name in ("hermes", "json_in_tag", "pythonic", "native"):
            assert get_notation(name).offer([switch, dim]).count("The lights of the house.") == 1
