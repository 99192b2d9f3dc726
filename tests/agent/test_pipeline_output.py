"""Answers of a type: held to a schema, read, and sent back where they don't fit."""

from __future__ import annotations

import json
import typing
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel
from typing_extensions import TypedDict

from ferrule.agent.output import OutputType
from ferrule.agent.pipeline import model
from ferrule.errors import OutputInvalid, SettingsError
from ferrule.models.scripted import ScriptedModel
from tables import each_case


class Person(BaseModel):
    name: str
    age: int


class Place(TypedDict):
    city: str


@dataclass
class Day:
    when: date
    kind: Literal["work", "rest"]


@each_case(
    ("kind", "text", "value"),
    [
        (Person, '{"name": "A", "age": 3}', Person(name="A", age=3)),
        (Place, 'Here:\n```json\n{"city": "Paris"}\n```\nThat is it.', {"city": "Paris"}),
        (Person, 'Sure! {"name": "A", "age": 3}', Person(name="A", age=3)),
        (Person, '{"name": "A {sic}", "age": 3}\nI hope that [this] helps.', Person(name="A {sic}", age=3)),
        (list[int], 'The sizes: {"value": [1, 2]}', [1, 2]),
        (Day, '{"when": "2026-01-02", "kind": "rest"}', Day(date(2026, 1, 2), "rest")),
        (list[int], '{"value": [1, 2]}', [1, 2]),
        (list[int], "[1, 2]", [1, 2]),
        (bool, '{"value": true}', True),
        (Person | Place, '{"value": {"city": "Rome"}}', {"city": "Rome"}),
        (Place, 'Either {"city": "Rome"} or {"city": "Oslo"}.', {"city": "Oslo"}),
        (Place, 'It has the form {"city": …}, so {"city": "Rome"}.', {"city": "Rome"}),
        (Place, 'Sure {smiling}: {"city": "Rome"} [1]', {"city": "Rome"}),
        (Place, 'I\'d say:\n```python\nplace = {1: {2}}\n```\n{"city": "Rome"}', {"city": "Rome"}),
        (Place, 'First ```json\n{"city": "A"}\n``` then\n```json\n{"city": "B"}\n```', {"city": "B"}),
        (Place, '{"city": "Rome",}', {"city": "Rome"}),
        (Place, 'So (a set {a, b,} is meant): {"city": "Rome, }",\n}', {"city": "Rome, }"}),
        (list[int], "[1, 2,\n ]", [1, 2]),
        (list[int], "The primes {below 6} are [2, 3, 5,].", [2, 3, 5]),
    ],
)
def test_a_type_is_a_schema_of_an_object_and_a_value(kind: Any, text: str, value: Any) -> None:
    output = OutputType(kind)
    Draft202012Validator.check_schema(output.schema)
    assert output.schema["type"] == "object"
    assert output.parse(text) == value


@each_case(
    "text",
    [
        'Here: [{"city": "Rome"}]',
        'It is {"city": "Rome"}, or rather {"city": "Os',
        '{"city": "Rome",,}',
        '[{"city": "Rome"},',
        'It starts with {"outer": {"city": "Rome"}',
        '```python\nplace = {"city": "Rome"}\n```',
        'Like {"city": "Rome", "city": "Oslo"}',
        "Nothing is known: {}",
        "Not } this { way",
    ],
)
def test_prose_in_which_another_answer_may_be_meant_is_asked_for_again(text: str) -> None:
    with pytest.raises(OutputInvalid, match=r"^The answer must be JSON and nothing else: "):
        OutputType(dict[str, Any]).parse(text)


def test_an_object_in_prose_that_does_not_fit_is_told_its_fields() -> None:
    with pytest.raises(OutputInvalid, match=r"- age: got the string"):
        OutputType(Person).parse('Sure! {"name": "A", "age": "old"}')


async def test_an_answer_that_does_not_fit_is_sent_back_with_what_is_wrong() -> None:
    scripted = ScriptedModel("A is three.", '{"name": "A", "age": "old"}', '{"name": "A", "age": 3}')
    run = await model(scripted).system("Be brief.").chat("Who?").parse_as(Person).run()
    assert run.output == Person(name="A", age=3)
    asked = [m.text for m in run.conversation.messages if m.role == "user"]
    assert asked[1].startswith("The answer must be JSON and nothing else: not valid JSON at line 1")
    assert asked[2].startswith("The answer is not what was asked for:\n- age: got the string")
    # A model that can't be held to a schema is told of it, and the conversation stays as it is.
    told = scripted.seen[0].messages[0].text
    assert told.startswith("Be brief.\n\nYour answer must be JSON")
    assert json.loads(told.partition("schema:\n")[2]) == OutputType(Person).schema
    assert run.conversation.messages[0].text == "Be brief."


async def test_an_answer_that_never_fits_is_an_error_that_has_it() -> None:
    with pytest.raises(OutputInvalid, match="age: got the string") as caught:
        await model(ScriptedModel(*['{"name": "A", "age": "x"}'] * 2)).chat("?").parse_as(Person, retries=1).run()
    assert caught.value.text == '{"name": "A", "age": "x"}'


async def test_the_typed_dict_of_typing_is_read_on_every_python():
    class Town(typing.TypedDict):
        city: str

    run = await model(ScriptedModel('{"city": "Oslo"}')).chat("?").parse_as(Town).run()
    assert run.output == {"city": "Oslo"}


@pytest.mark.parametrize("kind", [3, "Person", object()])
def test_what_is_no_type_is_refused_at_the_call(kind):
    with pytest.raises(SettingsError, match=r"parse_as (can't use|takes a type)"):
        model(ScriptedModel("x")).parse_as(kind)


async def test_a_json_schema_as_the_type_of_an_answer() -> None:
    schema = {"type": "array", "items": {"$ref": "#/definitions/size"}, "definitions": {"size": {"type": "integer"}}}
    scripted = ScriptedModel('["a"]', '[1, "2"]')
    run = await model(scripted).chat("Sizes?").parse_as(schema).run()
    assert run.output == [1, 2]
    assert "value[0]: got the string" in scripted.seen[1].messages[-1].text
    with pytest.raises(SettingsError, match="not a JSON Schema"):
        model(scripted).parse_as({"type": "nothing"})


def test_an_answer_of_another_type_is_called_the_answer() -> None:
    with pytest.raises(OutputInvalid, match=r"^The answer is not what was asked for:\n- answer: got the string"):
        OutputType(list[int]).parse('"none"')
