"""`--schema`: an answer that is checked and printed as JSON, and nothing else on standard output."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import openai_server
import pytest
from scripted_http import Reply
from terminals import assert_refused, ferrule

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
ADA = openai_server.says('{"name": "Ada", ', '"age": 36}')


async def asked(schema: object, *replies: Reply, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    async with openai_server.server(*replies, judge=openai_server.lenient) as server:
        given = schema if isinstance(schema, str) else json.dumps(schema)
        command = ("ask", "Who?", "-m", "vllm:m", "--base-url", f"{server.url}/v1", "--schema", given, *options)
        return await asyncio.to_thread(ferrule, *command)


async def test_the_answer_is_json(tmp_path: Path) -> None:
    file = tmp_path / "person.json"
    file.write_text(json.dumps(PERSON))
    for schema in (PERSON, str(file)):
        done = await asked(schema, ADA)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout) == {"name": "Ada", "age": 36}


async def test_calls_are_on_standard_error_and_values_need_not_be_objects() -> None:
    call = openai_server.calls(("c1", "calculator", '{"expression": "6 * 7"}'))
    done = await asked({"type": "array", "items": {"type": "integer"}}, call, openai_server.says('{"value": [42]}'))
    assert json.loads(done.stdout) == [42]
    assert done.stderr == "ferrule: calculator  6 * 7  →  42\n"


async def test_an_answer_that_does_not_fit_is_sent_back_and_at_last_refused() -> None:
    wrong = openai_server.says('{"name": "Ada", "age": -1}')
    done = await asked(PERSON, wrong, openai_server.says("Ada, of course."), ADA)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"name": "Ada", "age": 36})
    done = await asked(PERSON, wrong, wrong, wrong)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "ferrule: The answer is not what was asked for: age: got the number -1; expected an integer of at least 0 "
        '(the last answer: {"name": "Ada", "age": -1})\n'
    )


async def test_the_value_is_in_the_last_event() -> None:
    done = await asked(PERSON, ADA, options=("--json",))
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["event"], last["output"]) == ("finished", {"name": "Ada", "age": 36})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("{broken", ("--schema", "not JSON")),
        ("missing.json", ("missing.json", "No such file")),
        ('{"type": "thing"}', ("not a JSON Schema", "type")),
        ('{"type": "object", "properties": 1}', ("properties",)),
    ],
)
def test_what_is_no_schema(schema: str, words: tuple[str, ...]) -> None:
    assert_refused(ferrule("ask", "Hi", "-m", "echo", "--schema", schema), *words)
