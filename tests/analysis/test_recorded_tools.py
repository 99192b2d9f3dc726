"""An analysis that used added tools, or a live search, is replayed without them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from staged_model import StagedModel

import ferrule.analysis.running.toolbox
from ferrule import Toolset, tool
from ferrule.analysis import AnalysisResult, AnalysisSettings, run_analysis
from ferrule.analysis.recording import Recording, record_analysis, replay_analysis
from ferrule.analysis.recording.calls import restore_tools
from ferrule.analysis.tools.news_search import VARIABLE, make_news_tool
from ferrule.conversation import Image, ToolCall
from ferrule.errors import SettingsError
from ferrule.execution import Policy
from ferrule.tools.registry import BoundRegistry

QUICK = AnalysisSettings(mode="quick")
PNG = Image(b"\x89PNG\r\n\x1a\n" + b"\0" * 20, "image/png")


def plan(*tools: str) -> dict[str, Any]:
    tasks = [{"id": f"t{at}", "tool": one, "query": f"Use {one}."} for at, one in enumerate(tools, 1)]
    return {"plans": [{"approach": "Use tools.", "tasks": tasks}]}


def answers(*tools: str, **others: Any) -> dict[str, Any]:
    return {
        "complexity": {"level": "straightforward"},
        "candidates": plan(*tools),
        "synthesis": {"answer": "There are 12.", "key_findings": ["There are 12."]},
        "focused_answer": {"answer_type": "number", "answer_value": 12, "formatted_answer": "12"},
        **others,
    }


CALLED: list[str] = []


@tool(read_only=True)
def count_orders(region: str) -> int:
    """Count the orders of a region."""
    CALLED.append(region)
    if region == "Nowhere":
        raise ValueError("no such region")
    return 12


class Shelf(Toolset):
    """A shelf with pictures."""

    @tool(read_only=True)
    def draw(self, name: str = "x") -> Image:
        """Draw a picture."""
        CALLED.append(name)
        return PNG

    @tool(destructive=True, approval="always")
    def clear(self) -> str:
        """Clear the shelf."""
        CALLED.append("cleared")
        return "cleared"


COUNT = [
    [ToolCall("c1", "count_orders", '{"region": "North"}'), {"answer": "12 orders.", "values": {"orders": 12}}],
]
ASKED = answers(
    "count_orders",
    "draw",
    "clear",
    **{
        "t1/count_orders": [
            ToolCall("c1", "count_orders", '{"region": "North"}'),
            ToolCall("c2", "count_orders", '{"region": "Nowhere"}'),
            ToolCall("c3", "count_orders", '{"area": 1}'),
            {"answer": "12 orders.", "values": {"orders": 12}},
        ],
        "t2/draw": [ToolCall("c1", "draw", "{}"), {"answer": "It was drawn."}],
        "t3/clear": [ToolCall("c1", "clear", "{}"), {"answer": "It may not be cleared."}],
    },
)


async def record(path: Path, model: StagedModel, *tools: Any, **options: Any) -> AnalysisResult:
    return await run_analysis(
        "How many?", model=model, tools=tools, recording=record_analysis(path), settings=QUICK, **options
    )


async def replay(path: Path, *tools: Any, **options: Any) -> tuple[AnalysisResult, Recording]:
    recording = replay_analysis(path, **options)
    return await run_analysis("", recording=recording, tools=tools), recording


async def test_it_is_replayed_without_the_tools(tmp_path: Path) -> None:
    CALLED.clear()
    model = StagedModel(ASKED)
    made = await record(tmp_path / "a.jsonl", model, count_orders, Shelf, policy=Policy())
    assert CALLED in (["North", "Nowhere", "x"], ["North", "x", "Nowhere"], ["x", "North", "Nowhere"])
    CALLED.clear()
    again, recording = await replay(tmp_path / "a.jsonl", record=tmp_path / "b.jsonl")
    assert again == made
    assert recording.changes == []
    assert not CALLED
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "a.jsonl").read_bytes()
    assert (await replay(tmp_path / "b.jsonl"))[0] == made
    statuses = [
        part["status"]
        for line in (tmp_path / "a.jsonl").read_text().splitlines()
        if (row := json.loads(line)).get("name") == "result"
        for part in row["value"]["message"]["parts"]
    ]
    assert statuses == ["ok", "error", "invalid", "ok", "denied"]


async def test_tools_are_restored_as_they_were_offered(tmp_path: Path) -> None:
    await record(tmp_path / "a.jsonl", StagedModel(ASKED), count_orders, Shelf)
    source = replay_analysis(tmp_path / "a.jsonl").source
    assert source is not None
    restored = restore_tools(source, BoundRegistry(()))
    assert [one.name for one in restored] == ["count_orders", "draw", "clear"]
    count = restored.get("count_orders")
    assert count is not None
    assert count.spec == count_orders.spec
    clear = restored.get("clear")
    assert clear is not None
    assert clear.group is not None
    assert clear.group.name == "Shelf"
    assert clear.annotations.destructive is True


async def test_a_tool_that_has_changed_shows_what_would_be_asked_anew(tmp_path: Path) -> None:
    await record(tmp_path / "a.jsonl", StagedModel(answers("count_orders", count_orders=COUNT[0])), count_orders)

    @tool(name="count_orders")
    def changed(area: str) -> int:
        """Count the orders of an area."""
        raise AssertionError(area)

    result, recording = await replay(tmp_path / "a.jsonl", changed)
    assert result.answer == "There are 12."
    assert "analysis/candidates/0" in [change.place for change in recording.changes]
    assert any("count_orders" in str(change) and "t1/" in change.place for change in recording.changes)


async def test_a_tool_that_was_too_slow_is_so_in_the_replay(tmp_path: Path) -> None:
    @tool(read_only=True)
    async def wait() -> str:
        """Wait."""
        await asyncio.sleep(60)
        return "waited"

    asked = answers("wait", wait=ToolCall("c1", "wait", "{}"))
    settings = QUICK.model_copy(update={"tool_timeout": 1, "tool_retries": 0})
    made = await run_analysis(
        "How many?", model=StagedModel(asked), tools=[wait], settings=settings,
        recording=record_analysis(tmp_path / "a.jsonl"),
    )  # fmt: skip
    assert made.tasks[0].attempts[0].failure == "timeout"
    assert (await replay(tmp_path / "a.jsonl"))[0] == made


@pytest.fixture
def address() -> Iterator[str]:
    """A search service on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            data = json.dumps({"results": [{"title": "Strike ends", "url": "http://a.test/1", "content": "It did."}]})
            self.send_response(200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data.encode())

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_search_is_replayed_without_key_or_network(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ferrule.analysis.running.toolbox, "make_news_tool", lambda key, most: make_news_tool(key, most, address)
    )
    monkeypatch.setenv(VARIABLE, "tvly-secret-0123456789")
    made = await record(tmp_path / "a.jsonl", StagedModel(answers("news_search")))
    assert made.tasks[0].value["results"][0]["title"] == "Strike ends"
    monkeypatch.undo()
    again, recording = await replay(tmp_path / "a.jsonl")
    assert again == made
    assert recording.changes == []
    assert "tvly-secret" not in (tmp_path / "a.jsonl").read_text()


async def test_a_key_of_today_changes_no_recorded_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await record(tmp_path / "a.jsonl", StagedModel(answers("count_orders", count_orders=COUNT[0])), count_orders)
    monkeypatch.setenv(VARIABLE, "tvly-secret-0123456789")
    assert (await replay(tmp_path / "a.jsonl"))[1].changes == []


async def test_computing_again_and_going_on_say_what_is_missing(tmp_path: Path) -> None:
    made = await record(tmp_path / "a.jsonl", StagedModel(answers("count_orders", count_orders=COUNT[0])), count_orders)
    assert made.notices == ()
    CALLED.clear()
    again, _ = await replay(tmp_path / "a.jsonl", computes=True)
    assert again.notices == (
        "code runs again, tools are not called: the results of count_orders are the recorded ones",
    )
    assert [task.value for task in again.tasks] == [task.value for task in made.tasks]
    reasoned = {"conclusion": "Yes.", "steps": [{"statement": "12 > 10."}], "confidence": 0.9}
    further = answers("logic_kernel", logic_kernel=reasoned) | {
        "candidates": {"plans": [{"tasks": [{"id": "t2", "tool": "logic_kernel", "query": "?", "needs": ["t1"]}]}]}
    }
    goes_on = record_analysis(tmp_path / "b.jsonl", continues=tmp_path / "a.jsonl")
    later = await run_analysis("Is it enough?", model=StagedModel(further), recording=goes_on, settings=QUICK)
    assert len(later.notices) == 1
    assert "had the tool count_orders, which isn't given now" in later.notices[0]
    assert (await replay(tmp_path / "b.jsonl"))[0] == later
    goes_on = record_analysis(tmp_path / "c.jsonl", continues=tmp_path / "a.jsonl")
    with_tool = await run_analysis(
        "Is it enough?", model=StagedModel(further), recording=goes_on, settings=QUICK, tools=[count_orders]
    )
    assert with_tool.notices == ()
    assert not CALLED


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (('"parameters":', '"parameter":'), r"line \d+: a damaged row: 'parameters' is missing"),
        (('"status": "ok"', '"status": "fine"'), r"line \d+: a damaged row: .*status"),
    ],
)
async def test_a_damaged_recording_is_refused(damage: tuple[str, str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    await record(path, StagedModel(answers("count_orders", count_orders=COUNT[0])), count_orders)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(one.replace(*damage) if '"type": "value"' in one else one for one in lines))
    with pytest.raises(SettingsError, match=said):
        await replay(path)


async def test_a_recording_that_was_cut_off_ends_there(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    await record(path, StagedModel(answers("count_orders", count_orders=COUNT[0])), count_orders)
    kept = [one for one in path.read_text().splitlines() if json.loads(one).get("name") not in ("result", "end")]
    path.write_text("\n".join(kept))
    result, _ = await replay(path)
    assert result.tasks[0].error == "the recording ends here (no result of t1/count_orders/0)"


async def test_what_models_are_shown_does_not_depend_on_which_task_was_faster(tmp_path: Path) -> None:
    reasoned = {"conclusion": "Yes.", "steps": [{"statement": "12 > 10."}], "confidence": 0.9}
    tools = ("logic_kernel", "logic_kernel", "count_orders")
    asked = answers(*tools, logic_kernel=reasoned, **{"t3/count_orders": COUNT[0]})
    slow = StagedModel(asked, delays={"t1/logic_kernel": 0.2, "t3/count_orders": 0.05})
    made = await record(tmp_path / "a.jsonl", slow, count_orders)
    assert [task.id for task in made.tasks] == ["t2", "t3", "t1"]
    shown = slow.find("synthesis").question
    assert shown.index("t1 (logic") < shown.index("t2 (logic") < shown.index("t3 (count")
    again, recording = await replay(tmp_path / "a.jsonl")
    assert again == made
    assert recording.changes == []
