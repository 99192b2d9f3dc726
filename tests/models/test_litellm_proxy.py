"""LiteLLM's proxy, of PyPI, with answers of its own making: the formats that it translates, and its errors."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferrule import model, tool
from ferrule.errors import ProviderError
from ferrule.models.gateway import GatewaySettings, configure
from installed_packages import install_from_pypi

pytestmark = pytest.mark.slow
KEY = f"sk-{secrets.token_hex(16)}"
CALL = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'
ANSWERS = {
    "plain": "The answer is forty-two.",
    "calling": CALL,
    "limited": "litellm.RateLimitError",
    "long": "litellm.ContextWindowExceededError",
    "down": "litellm.InternalServerError",
}
CONFIG = "model_list:\n" + "".join(
    f"  - {{model_name: {name}, litellm_params: {{model: openai/{name}, api_key: none, mock_response: '{answer}'}}}}\n"
    for name, answer in ANSWERS.items()
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = install_from_pypi("litellm[proxy]==1.108.7") / "litellm"
    folder = tmp_path_factory.mktemp("litellm")
    (folder / "config.yaml").write_text(CONFIG + "router_settings: {num_retries: 0}\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(program), "--config", str(folder / "config.yaml"), "--host", "127.0.0.1", "--port", str(port)]
    # Its table of prices is otherwise fetched from the network, three times.
    env = {**os.environ, "LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    log = folder / "log"
    with log.open("w") as output:
        process = subprocess.Popen(command, env=env, cwd=folder, stdout=output, stderr=output)
    try:
        wait_for(f"http://127.0.0.1:{port}/health/liveliness", process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server answers."""
    while process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=60).close()
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    raise AssertionError(log.read_text()[-2000:])


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize("provider", ["compatible", "anthropic", "google"])
async def test_each_format(address: str, provider: str) -> None:
    base_url = f"{address}/v1" if provider == "compatible" else address
    run = await model(f"{provider}:plain", base_url=base_url, api_key=KEY).chat("6 * 7?").run()
    assert (run.text, run.stopped) == (ANSWERS["plain"], "done")
    assert run.usage.prompt_tokens
    assert run.usage.sampled_tokens


async def test_calls_in_text(address: str) -> None:
    chosen = model("compatible:calling", base_url=f"{address}/v1", api_key=KEY)
    async with chosen.chat("2 + 3?").using(add, mode="hermes").stream() as run:
        async for _ in run:
            if run.conversation.messages[-1].role == "tool":
                break  # it would call for ever
    assert run.conversation.messages[-1].result.text == "5"


@pytest.mark.parametrize(
    ("name", "status", "said", "attempts"),
    [
        ("limited", 429, "rate limit", 2),
        ("down", 500, "internal server error", 2),
        ("unheard-of", 400, "unheard-of", 1),
    ],
)
async def test_errors(address: str, name: str, status: int, said: str, attempts: int) -> None:
    configure(address, GatewaySettings(attempts=2, first_delay=0.05))
    chosen = model(f"compatible:{name}", base_url=f"{address}/v1", api_key=KEY)
    with pytest.raises(ProviderError, match=f"the server answered {status}") as caught:
        await chosen.chat("6 * 7?").run()
    assert said in str(caught.value)
    assert chosen.model.gateway.report().attempts == attempts


async def test_a_prompt_that_is_too_long(address: str) -> None:
    run = await model("compatible:long", base_url=f"{address}/v1", api_key=KEY).chat("6 * 7?").run()
    assert run.stopped == "context"
