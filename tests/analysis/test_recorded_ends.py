"""However an analysis ends, its replay ends in the same way: at a limit, by Ctrl-C, by what a model did wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from staged_model import StagedModel

from ferrule.analysis import AnalysisSettings, run_analysis, stream_analysis
from ferrule.analysis.events import TaskFinished
from ferrule.analysis.recording import record_analysis, replay_analysis
from ferrule.errors import ProviderError
from ferrule.models.prices import configure_prices

REASONED = {"conclusion": "Yes.", "steps": [{"statement": "12 is more than 10."}], "confidence": 0.9}
PLAN = {
    "plans": [
        {
            "approach": "Think.",
            "tasks": [
                {"id": "t1", "tool": "logic_kernel", "query": "Is it?"},
                {"id": "t2", "tool": "logic_kernel", "query": "Is it not?"},
                {"id": "t3", "tool": "logic_kernel", "query": "What then?", "needs": ["t2"]},
            ],
        }
    ]
}
ANSWERS: dict[str, Any] = {
    "complexity": {"level": "straightforward"},
    "candidates": PLAN,
    "logic_kernel": REASONED,
    "synthesis": {"answer": "It is.", "key_findings": ["12 is more than 10."]},
    "focused_answer": {"answer_type": "yes_no", "answer_value": True, "formatted_answer": "Yes"},
}
BROKEN = ProviderError("the provider failed", 500)
ENDS = {
    "a model that is too slow": ({}, {"t2/logic_kernel": 10}, {"tool_timeout": 1, "tool_retries": 0}),
    "a stage that is too slow": ({}, {"complexity": 0.02}, {}),
    "the limit of seconds": ({}, {"t2/logic_kernel": 10}, {"max_seconds": 1.5}),
    "the limit of requests": ({}, {}, {"max_calls": 5}),
    "a provider that fails in a task": ({"t2/logic_kernel": BROKEN}, {}, {"tool_retries": 0}),
    "a provider that fails in the end": ({"synthesis": BROKEN}, {}, {}),
    "nonsense": ({"t2/logic_kernel": "nonsense"}, {}, {"tool_retries": 1}),
}


@pytest.mark.parametrize("name", ENDS)
async def test_it_ends_as_it_did(name: str, tmp_path: Path) -> None:
    answers, delays, changes = ENDS[name]
    made = await run_analysis(
        "Is it so?",
        model=StagedModel(ANSWERS | answers, delays=delays),
        settings=AnalysisSettings(mode="quick", **changes),
        recording=record_analysis(tmp_path / "a.jsonl"),
    )
    recording = replay_analysis(tmp_path / "a.jsonl", record=tmp_path / "b.jsonl")
    assert await run_analysis("", recording=recording) == made
    assert recording.changes == []
    assert await run_analysis("", recording=replay_analysis(tmp_path / "b.jsonl")) == made


async def test_a_limit_of_cost_ends_it_again_where_no_price_is_known(tmp_path: Path) -> None:
    configure_prices({"staged": {"input": 1000.0, "output": 1000.0}})
    try:
        made = await run_analysis(
            "Is it so?",
            model=StagedModel(ANSWERS),
            settings=AnalysisSettings(mode="quick", max_cost=0.5, concurrency=1),
            recording=record_analysis(tmp_path / "a.jsonl"),
        )
    finally:
        configure_prices(None)
    assert made.stopped == "the limit of $0.5 was reached; $0.22 of it is kept for the answer"
    recording = replay_analysis(tmp_path / "a.jsonl", record=tmp_path / "b.jsonl")
    assert await run_analysis("", recording=recording) == made
    assert recording.changes == []
    assert await run_analysis("", recording=replay_analysis(tmp_path / "b.jsonl")) == made


async def test_what_was_stopped_is_so_in_the_replay(tmp_path: Path) -> None:
    answers = ANSWERS | {"t2/logic_kernel/0": "nonsense"}
    model = StagedModel(answers, delays={"t2/logic_kernel/1": 30})
    recording = record_analysis(tmp_path / "a.jsonl")
    settings = AnalysisSettings(mode="quick")
    async with stream_analysis("Is it so?", model=model, settings=settings, recording=recording) as analysis:
        async for event in analysis:
            if isinstance(event, TaskFinished):
                await asyncio.sleep(0.1)
                break
    made = analysis.result
    assert [(task.id, task.status) for task in made.tasks] == [("t1", "done"), ("t2", "cancelled"), ("t3", "cancelled")]
    assert made.tasks[1].ended - made.tasks[1].started >= 0.1
    replay = replay_analysis(tmp_path / "a.jsonl")
    assert await run_analysis("", recording=replay) == made
    assert replay.changes == []
