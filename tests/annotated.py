"""Types that parameters of tools have in tests, and tools that take them."""

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Annotated, Any, NamedTuple, NotRequired, Required, TypedDict

import pytest
import typing_extensions
from pydantic import BaseModel, Field, field_validator

from ferrule.errors import ArgumentsInvalid
from ferrule.tools.decorator import Tool, tool


class Unit(Enum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: float
    y: float = 0.0


class Stop(TypedDict):
    city: Annotated[str, "Where to stop"]
    nights: NotRequired[int]


class Loose(TypedDict, total=False):
    a: Required[int]
    b: str


class Tree(TypedDict):
    name: str
    children: "list[Tree]"


class Modern(typing_extensions.TypedDict):
    stops: list[Stop]


@dataclass
class Journey:
    stops: list[Stop]
    start: Point
    note: Annotated[str, "Anything else"] = ""
    tags: list[str] = field(default_factory=list)


class Person(BaseModel):
    name: str
    age: int = Field(ge=0, description="In years")

    @field_validator("name")
    @classmethod
    def _has_a_letter(cls, value: str) -> str:
        if not any(letter.isalpha() for letter in value):
            raise ValueError("a name has a letter in it")
        return value


class Pair(NamedTuple):
    left: int
    right: str


def taking(hint: Any, **default: Any) -> Tool:
    """A tool with one parameter, `value`, of that type."""

    def take(value): ...

    take.__annotations__ = {"value": hint}
    if default:
        take.__defaults__ = (default["default"],)
    return tool(take)


def problem(made: Tool, arguments: str | dict[str, Any]) -> str:
    with pytest.raises(ArgumentsInvalid) as caught:
        made.bind(arguments)
    return str(caught.value).removeprefix("Wrong arguments:\n")


def value_schema(hint: Any) -> Any:
    return taking(hint).parameters["properties"]["value"]
