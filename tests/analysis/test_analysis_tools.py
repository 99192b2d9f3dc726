"""The analyst's own tools as ferrule tools: what they ask, the text and data that they return, and what they refuse."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from staged_model import StagedModel

from ferrule.analysis import AnalysisSettings
from ferrule.analysis.asking import Asker, ModelChoice
from ferrule.analysis.limits import AnalysisLimits
from ferrule.analysis.tools.attempts import TaskAttempt
from ferrule.analysis.tools.knowledge import make_knowledge_tool
from ferrule.analysis.tools.news_search import find_news_key, make_news_tool
from ferrule.analysis.tools.reasoning import make_reasoning_tool
from ferrule.conversation import ToolCall, ToolResult
from ferrule.execution import Executor
from ferrule.tools.decorator import Tool
from ferrule.tools.registry import BoundRegistry
from ferrule.tools.scope import CallScope

REASONED = {
    "conclusion": "The shipping delay drives the drop.",
    "steps": [{"statement": "Sales fell.", "follows_from": "t1"}, {"statement": "Delays came first."}],
    "hypotheses": [
        {"statement": "Prices rose.", "against": ["t2 shows none"], "likelihood": 0.1},
        {"statement": "Delays grew.", "support": ["t1"], "likelihood": 0.8},
    ],
    "causal_chain": [{"cause": "strike", "effect": "delay", "mechanism": "no trucks"}],
    "arguments": [{"argument": "All drops are seasonal", "is_valid": False, "why": "one wasn't"}],
    "confidence": 0.75,
    "limitations": ["one quarter only"],
}


def make_asker(model: StagedModel) -> Asker:
    return Asker(ModelChoice(model), AnalysisLimits())


async def call(tool: Tool[..., Any], query: str, attempt: TaskAttempt | None = None) -> ToolResult:
    request = ToolCall("t1", tool.name, json.dumps({"query": query}))
    answer = await Executor(BoundRegistry([tool])).run(request, CallScope(run_state=attempt))
    assert isinstance(answer, ToolResult)
    return answer


async def test_reasoning_has_steps_hypotheses_causes_and_arguments() -> None:
    model = StagedModel({"logic_kernel": REASONED})
    tool = make_reasoning_tool(make_asker(model), AnalysisSettings())
    result = await call(tool, "Why did sales fall?", TaskAttempt("t4", context="Results: t1"))
    assert result.text.splitlines() == [
        "Conclusion: The shipping delay drives the drop. (confidence 0.75)",
        "1. Sales fell. [from: t1]",
        "2. Delays came first.",
        "Hypothesis (0.8): Delays grew.",
        "  for: t1",
        "Hypothesis (0.1): Prices rose.",
        "  against: t2 shows none",
        "Cause: strike → delay (no trucks)",
        "Argument (not valid): All drops are seasonal: one wasn't",
        "Limitation: one quarter only",
    ]
    assert result.data["hypotheses"][1]["likelihood"] == 0.8
    assert str(model.seen[0].key) == "t4/logic_kernel/0"
    assert model.seen[0].question == "Task:\nWhy did sales fall?\n\nResults: t1"


@pytest.mark.parametrize(
    "wrong", [{**REASONED, "confidence": 2}, {**REASONED, "steps": []}, {**REASONED, "conclusion": ""}]
)
async def test_reasoning_that_does_not_fit_its_structure_is_an_error(wrong: dict[str, Any]) -> None:
    tool = make_reasoning_tool(make_asker(StagedModel({"logic_kernel": wrong})), AnalysisSettings())
    attempt = TaskAttempt("t1")
    result = await call(tool, "Why?", attempt)
    assert result.status == "error"
    assert result.text.startswith("error: The answer is not what was asked for:")
    assert attempt.failure is not None


async def test_knowledge_says_that_it_is_from_training_data() -> None:
    known = {
        "summary": "It was founded long ago.",
        "facts": [{"statement": "It is old.", "certainty": "medium", "field": "history"}],
        "definitions": [{"term": "it", "meaning": "the thing"}],
        "uncertain": ["the year"],
        "known_until": "2024",
        "confidence": 0.6,
    }
    tool = make_knowledge_tool(make_asker(StagedModel({"knowledge_retriever": known})), AnalysisSettings())
    result = await call(tool, "When was it founded?")
    assert result.text.splitlines() == [
        "From the model's training data, not from live sources (until 2024): It was founded long ago. (confidence 0.6)",
        "- It is old. [certainty medium, history]",
        "Term: it: the thing",
        "Uncertain: the year",
    ]
    assert result.data["source"] == "training data"


async def test_the_tools_are_ordinary_tools_of_a_query() -> None:
    asker = make_asker(StagedModel({}))
    for make in (make_reasoning_tool, make_knowledge_tool):
        tool = make(asker, AnalysisSettings())
        assert list(tool.parameters["properties"]) == ["query"]
        assert tool.description


FOUND = {
    "query": "strike",
    "results": [
        {"title": "Strike ends", "url": "http://a.test/1", "content": "It ended.", "published_date": "2026-11-20"},
        {"title": "Ports reopen", "url": "http://a.test/2", "content": "x" * 5000, "extra": 1},
    ],
}


class SearchServer:
    """Answers like the search service, on loopback."""

    def __init__(self) -> None:
        self.status = 200
        self.body = json.dumps(FOUND)
        self.requests: list[tuple[str, dict[str, Any], str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append((self.path, body, self.headers["authorization"]))
                data = outer.body.encode()
                self.send_response(outer.status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def search() -> Iterator[SearchServer]:
    made = SearchServer()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


async def test_news_are_searched_with_the_key(search: SearchServer) -> None:
    result = await call(make_news_tool("tvly-secret", 3, search.address), "strike " * 100)
    ((path, body, authorization),) = search.requests
    assert (path, body["topic"], body["max_results"], authorization) == ("/search", "news", 3, "Bearer tvly-secret")
    assert len(body["query"]) == 400
    lines = result.text.splitlines()
    assert lines[:3] == [
        "2 articles from a live search:",
        "1. Strike ends, 2026-11-20 (http://a.test/1)",
        "It ended.",
    ]
    assert len(lines[-1]) == 1500
    assert result.data["results"][0]["published_date"] == "2026-11-20"


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, "{}", "the search service refused the key: set TAVILY_API_KEY"),
        (500, "broken tvly-secret", "the search service answered 500: broken [key]"),
        (302, "", "the search service answered 302"),
        (200, "<html>", "the search service didn't answer in JSON"),
        (200, '{"results": "none"}', "answered with something else than a list of articles"),
        (200, "7", "answered with something else than a list of articles"),
    ],
)
async def test_a_search_that_fails_is_a_clear_error(search: SearchServer, status: int, body: str, message: str) -> None:
    search.status, search.body = status, body
    result = await call(make_news_tool("tvly-secret", 3, search.address), "strike")
    assert result.status == "error"
    assert message in result.text
    assert "tvly-secret" not in result.text


async def test_a_search_service_that_is_not_there_is_a_clear_error(search: SearchServer) -> None:
    result = await call(make_news_tool("k", 3, "http://127.0.0.1:1"), "strike")
    assert "the search service can't be reached" in result.text


async def test_nothing_found_is_said(search: SearchServer) -> None:
    search.body = '{"results": []}'
    assert (await call(make_news_tool("k", 3, search.address), "strike")).text == "No articles were found."


def test_the_search_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAVILY_API_KEY", raising=False)
    assert find_news_key() == ""
    monkeypatch.setenv("TAVILY_API_KEY", " tvly-1 ")
    assert find_news_key() == "tvly-1"
