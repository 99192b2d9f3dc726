"""A server that breaks its answers on purpose and judges what its client makes of that: llmock, of PyPI."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from ferrule import model, tool
from ferrule.agent.run import Run
from ferrule.errors import ProviderError
from ferrule.models.gateway import GatewaySettings, Timeouts, configure
from installed_packages import install_from_pypi

pytestmark = pytest.mark.slow
REQUIREMENTS = ("llmock==0.2.2", "fastapi==0.165.0", "starlette==1.10.0", "uvicorn==0.54.0", "pydantic==2.14.4")
PATHS = {"openai": "/v1", "openai-responses": "/v1", "anthropic": "/anthropic", "google": "/gemini"}

BEFORE_TEXT = {"openai": 1, "openai-responses": 4, "anthropic": 2, "google": 0}
AFTER_TEXT = {"openai": 3, "openai-responses": 6, "anthropic": 4, "google": 2}
"""After how many events of an answer nothing of its text has arrived, or some."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    program = install_from_pypi(*REQUIREMENTS) / "llmock"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(program), "serve", "--port", str(port), "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        address = f"http://127.0.0.1:{port}"
        wait_for(f"{address}/health", process)
        yield address
        process.terminate()


def wait_for(address: str, process: subprocess.Popen[Any]) -> None:
    """Wait until a server answers."""
    while process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=30).close()
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError(f"the server ended with status {process.returncode}")


def send(address: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


@tool
def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"rain in {city}"


async def ask(
    address: str, provider: str, *behaviors: dict[str, Any], tools: bool = False, finding: str | None = None
) -> Run[str]:
    """Ask a provider's model whose answer is broken in this way; the judge has nothing else to say against us."""
    send(f"{address}/_llmock/reset", {})
    if behaviors:
        send(f"{address}/_llmock/scenario", {"behaviors": list(behaviors)})
    configure(address, GatewaySettings(first_delay=0.2, timeouts=Timeouts(silence=2)))
    pipeline = model(f"{provider}:m", api_key="k", base_url=address + PATHS[provider]).chat("The weather in Ulm?")
    try:
        return await (pipeline.using(get_weather) if tools else pipeline).run()
    finally:
        found = send(f"{address}/_llmock/verdict")["findings"]
        assert [one["code"] for one in found] == ([finding] if finding else []), found


@pytest.mark.parametrize("provider", PATHS)
async def test_tools_are_called(address: str, provider: str) -> None:
    run = await ask(address, provider, tools=True)
    results = [message.result for message in run.conversation.messages if message.role == "tool"]
    assert [result.text[:8] for result in results] == ["rain in "]
    assert run.text
    assert run.stopped == "done"


@pytest.mark.parametrize("provider", PATHS)
@pytest.mark.parametrize(
    "fault",
    [
        {"type": "fail", "status": 503, "times": 2},
        {"type": "fail", "status": 500, "times": 1},
        {"type": "fail", "status": 429, "retry_after": 1, "times": 2},
    ],
    ids=lambda fault: str(fault["status"]),
)
async def test_what_may_pass_is_asked_again(address: str, provider: str, fault: dict[str, Any]) -> None:
    run = await ask(address, provider, fault)
    assert run.text
    assert run.stopped == "done"


@pytest.mark.parametrize("provider", PATHS)
@pytest.mark.parametrize("status", [400, 401, 404])
async def test_what_stays_is_asked_once(address: str, provider: str, status: int) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(address, provider, {"type": "fail", "status": status, "times": None})
    assert caught.value.status == status


@pytest.mark.parametrize("provider", PATHS)
@pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed", "stall"])
async def test_a_broken_answer_is_an_error(address: str, provider: str, kind: str) -> None:
    """The judge sees requests alone: it takes for acceptance that what arrived is kept, and nothing asked again."""
    finding = {"disconnect": "gave_up", "truncate": "truncated_stream_accepted", "malformed": "malformed_chunk_ignored"}
    fault = {"type": "stream_fault", "kind": kind, "after_chunks": AFTER_TEXT[provider]}
    fault |= {"stall_seconds": 20} if kind == "stall" else {}
    run = await ask(address, provider, fault, finding=finding.get(kind))
    assert run.stopped == "error"


@pytest.mark.parametrize("provider", PATHS)
@pytest.mark.parametrize("kind", ["disconnect", "truncate"])
async def test_an_answer_that_breaks_before_its_text_is_asked_again(address: str, provider: str, kind: str) -> None:
    run = await ask(address, provider, {"type": "stream_fault", "kind": kind, "after_chunks": BEFORE_TEXT[provider]})
    assert run.text
    assert run.stopped == "done"


@pytest.mark.parametrize("provider", PATHS)
@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
async def test_a_wrong_call_is_answered(address: str, provider: str, kind: str) -> None:
    run = await ask(address, provider, {"type": "tool_fault", "kind": kind}, tools=True)
    first = next(message for message in run.conversation.messages if message.role == "tool")
    assert first.result.is_error
    assert run.text
    assert run.stopped == "done"
