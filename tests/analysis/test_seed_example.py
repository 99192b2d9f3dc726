"""The fourth seed's example, as it is written: against a server of Groq's format on loopback."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "servers"))

from openai_server import lenient, says, server

from ferrule.analysis import run_analysis
from ferrule.models import providers

ANSWERS: list[dict[str, Any]] = [
    {"level": "straightforward", "reason": "one computation"},
    {
        "plans": [
            {"approach": "Compute it.", "tasks": [{"id": "t1", "tool": "Python", "query": "Compute 17 factorial."}]}
        ]
    },
    {"primary_approach": "Use math.factorial.", "recommended_function_paths": ["math.factorial"]},
    {"extracted_values": {"n": 17}, "data_format": "a whole number"},
    {"query": "The factorial of n.", "result_format": "a whole number"},
    {"code": "import math\nresult = math.factorial(extracted_values['n'])", "result_checks": []},
    {"decision": "stop", "reason": "answered"},
    {"answer": "17! is 355687428096000.", "key_findings": ["17! is 355687428096000."]},
    {"answer_type": "number", "answer_value": 355687428096000, "formatted_answer": "355,687,428,096,000"},
]


async def test_the_example_works_as_written(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    query, key = "What is the factorial of 17?", "gsk-test"
    async with server(*(says(json.dumps(answer)) for answer in ANSWERS), judge=lenient) as loopback:
        groq = providers.PROVIDERS["groq"]
        monkeypatch.setitem(providers.PROVIDERS, "groq", replace(groq, base_url=loopback.url))

        result = await run_analysis(query, groq_api_key=key)

        for entry in result.output_entries:
            if entry.stage_type == "task_execution":
                task_data = entry.data
                print(f"Tool: {task_data.tool}")
                print(f"Query: {task_data.task_query}")
                print(f"Result: {task_data.result}")

                # For Python tool, you also get the code
                if task_data.code:
                    print(f"Generated Code:\n{task_data.code}")

                # And methodology information
                if task_data.methodology_data:
                    print(f"Approach: {task_data.methodology_data.primary_approach}")

        assert {request.headers["authorization"] for request in loopback.requests} == {f"Bearer {key}"}
        assert {request.body["model"] for request in loopback.requests} == {"openai/gpt-oss-120b"}
        assert len(loopback.requests) == len(ANSWERS)
    assert capsys.readouterr().out.splitlines() == [
        "Tool: py_executor",
        "Query: Compute 17 factorial.",
        "Result: 355687428096000",
        "Generated Code:",
        "import math",
        "result = math.factorial(extracted_values['n'])",
        "Approach: Use math.factorial.",
    ]
    assert result.focused_answer.answer_value == 355687428096000
    assert [(link.kind, link.source) for link in result.numbers][-1] == ("computed", "t1")
