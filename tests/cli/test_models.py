"""Models of providers from the command line, against servers on loopback that speak as the providers do."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import anthropic_server
import google_server
import openai_server
import pytest
from scripted_http import ScriptedServer
from terminals import assert_refused, environment, ferrule

from ferrule.cli.models import list_models
from ferrule.cli.session_options import PROVIDERS
from ferrule.models.naming import make_hosted_model
from ferrule.models.providers import PROVIDERS as KNOWN

CALL = '{"expression": "12 * 34"}'
ANSWER = "▸ calculator  12 * 34  →  408\n12 × 34 is 408.\n"
KEY = "test-key"
KEYS = {name: "" for one in KNOWN.values() for name in (*one.keys, one.url) if name}


async def asked(server: ScriptedServer, model: str, *options: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """`ferrule ask` against a server, whose address is the root of the provider's API."""
    root = server.url if model.startswith(("anthropic", "google")) else f"{server.url}/v1"
    command = ("ask", "What is 12 * 34?", "--model", model, "--base-url", root, *options)
    return await asyncio.to_thread(ferrule, *command, **{**KEYS, **changes})


def openai_script(**options: object) -> ScriptedServer:
    return openai_server.server(
        openai_server.calls(("c1", "calculator", CALL)), openai_server.says("12 × 34 ", "is 408."), **options
    )


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("vllm:served", "VLLM_API_KEY"),
        ("compatible:served", "OPENAI_COMPATIBLE_API_KEY"),
    ],
)
async def test_providers_that_speak_openais_format(model: str, variable: str) -> None:
    async with openai_script() as server:
        done = await asked(server, model, **{variable: KEY})
    assert (done.returncode, done.stdout, done.stderr) == (0, ANSWER, "")
    assert [request.body["model"] for request in server.requests] == [model.partition(":")[2]] * 2


async def test_a_server_that_wants_no_key() -> None:
    async with openai_script(judge=openai_server.lenient) as server:
        assert (await asked(server, "vllm:served")).stdout == ANSWER


async def test_openais_responses() -> None:
    call = openai_server.responses(openai_server.call_item("c1", "calculator", CALL))
    words = openai_server.responses(openai_server.message_item("12 × 34 is 408."))
    async with openai_server.server(call, words) as server:
        assert (await asked(server, "openai-responses:gpt-5", OPENAI_API_KEY=KEY)).stdout == ANSWER


async def test_anthropic() -> None:
    call = anthropic_server.answer(anthropic_server.call("toolu_1", "calculator", CALL))
    words = anthropic_server.answer(anthropic_server.text("12 × 34 is 408."))
    async with anthropic_server.AnthropicServer(call, words) as server:
        assert (await asked(server, "anthropic:claude-sonnet-5", ANTHROPIC_API_KEY=KEY)).stdout == ANSWER


async def test_google() -> None:
    call = google_server.answer(google_server.call("calculator", json.loads(CALL), "c1", signed=True))
    words = google_server.answer(google_server.text("12 × 34 is 408."))
    async with google_server.GoogleServer(call, words) as server:
        assert (await asked(server, "google:gemini-3-pro", GEMINI_API_KEY=KEY)).stdout == ANSWER


async def test_calls_in_the_text() -> None:
    said = f'<tool_call>{{"name": "calculator", "arguments": {CALL}}}</tool_call>'
    async with openai_server.server(openai_server.says(said), openai_server.says("12 × 34 is 408.")) as server:
        done = await asked(server, "openai:gpt-5", "--mode", "hermes", OPENAI_API_KEY=KEY)
    assert done.stdout == ANSWER
    assert "tools" not in server.requests[0].body


async def test_another_model_is_asked_where_the_first_fails() -> None:
    async with openai_server.server() as server:
        done = await asked(server, "openai:gpt-unknown", "--fallback", "echo", OPENAI_API_KEY=KEY)
    assert (done.returncode, done.stdout) == (0, "What is 12 * 34?\n")
    assert done.stderr.startswith("ferrule: falling back to echo from openai:gpt-unknown: ")
    assert done.stderr.count("\n") == 1


async def test_what_a_provider_refuses_is_one_line() -> None:
    async with openai_server.server() as server:
        done = await asked(server, "openai:gpt-5", OPENAI_API_KEY="wrong")
        assert_refused(done, "401", "Incorrect API key", "OPENAI_API_KEY")
        done = await asked(server, "openai:gpt-unknown", OPENAI_API_KEY=KEY)
        assert_refused(done, "openai:gpt-unknown", "does not exist")
    schema = openai_server.refused(400, "Invalid schema for function 'calculator': no such format")
    async with openai_server.server(schema) as server:
        assert_refused(await asked(server, "openai:gpt-5", OPENAI_API_KEY=KEY), "400", "Invalid schema for function")
    async with anthropic_server.AnthropicServer() as server:
        done = await asked(server, "anthropic:claude-sonnet-5", ANTHROPIC_API_KEY="wrong")
        assert_refused(done, "401", "ANTHROPIC_API_KEY")
    async with google_server.GoogleServer() as server:
        done = await asked(server, "google:gemini-3-pro", GEMINI_API_KEY="wrong")
        assert_refused(done, "API key not valid", "GEMINI_API_KEY")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--model", "openai:gpt-5"), ("no key for OpenAI", "OPENAI_API_KEY")),
        (("--model", "anthropic:claude-sonnet-5"), ("no key for Anthropic", "ANTHROPIC_API_KEY")),
        (("--model", "google:gemini-3-pro"), ("no key for Google", "GEMINI_API_KEY")),
        (("--model", "nobody:x"), ("unknown model 'nobody:x'", "anthropic", "vllm")),
        (("--model", "compatible:x"), ("compatible:x", "--base-url")),
        (("--model", "openai:gpt-5", "--base-url", "example.com"), ("example.com", "http://")),
        (("--model", "echo", "--base-url", "http://127.0.0.1:1"), ("--base-url", "echo")),
        (("--model", "echo", "--fallback", "nobody:x"), ("unknown model 'nobody:x'",)),
        (("--model", "echo", "--mode", "morse"), ("unknown notation 'morse'", "hermes")),
    ],
)
def test_what_can_not_be_had_is_told_before_anything_is_sent(options: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert_refused(ferrule("ask", "Hi", *options, **KEYS), *words)
    assert_refused(ferrule("chat", *options, **KEYS), *words)


def test_a_package_that_is_not_installed_is_named() -> None:
    hidden = "import importlib.util as u, sys\nfind = u.find_spec\n"
    hidden += "u.find_spec = lambda name, package=None: None if name == 'httpx2' else find(name, package)\n"
    hidden += "from ferrule.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "ask", "Hi", "--model", "openai:gpt-5"],
        capture_output=True,
        env=environment({**KEYS, "OPENAI_API_KEY": KEY}),
        text=True,
        check=False,
    )
    assert_refused(done, "needs the httpx2 package", 'pip install "ferrule[hosted]"')


def test_echo() -> None:
    assert ferrule("ask", "Hello there", "--model", "echo").stdout == "Hello there\n"


def test_the_list_says_what_each_can_do_and_is_ready() -> None:
    done = ferrule("models", **{**KEYS, "GROQ_API_KEY": "k"})
    assert (done.returncode, done.stderr) == (0, "")
    table, _, legend = done.stdout.partition("\n\n")
    rows = {line.split()[0]: line.split(maxsplit=4)[1:] for line in table.splitlines()}
    assert rows["model"] == ["tools", "images", "schema", "key"]
    assert rows["embedded"] == ["own", "no", "no", "not needed"]
    assert rows["local:FOLDER"] == ["varies", "varies", "no", "not needed"]
    assert rows["groq:MODEL"] == ["api", "yes", "yes", "set"]
    assert rows["deepseek:MODEL"] == ["api", "no", "no", "not set"]
    assert rows["vllm:MODEL"] == ["api", "yes", "yes", "not needed"]
    assert {f"{name}:MODEL" for name in KNOWN} <= set(rows)
    assert "--mode NOTATION" in legend
    assert max(map(len, done.stdout.splitlines())) < 80


def test_one_provider_with_its_address_and_key() -> None:
    done = ferrule("models", "openai", **{**KEYS, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    assert "address  http://127.0.0.1:9/v1 (change it by OPENAI_BASE_URL)" in done.stdout
    assert "key      OPENAI_API_KEY: not set; save one with: ferrule keys set openai" in done.stdout
    assert "give it by --base-url" in ferrule("models", "compatible:x", **KEYS).stdout
    assert_refused(ferrule("models", "opnai"), "unknown provider 'opnai'", "openai")


def test_the_list_as_json() -> None:
    listed = {one["name"]: one for one in json.loads(ferrule("models", "--json", **KEYS).stdout)}
    google = listed["google:MODEL"]
    assert google["address"] == "https://generativelanguage.googleapis.com"
    assert google["keys"] == ["GEMINI_API_KEY", "GOOGLE_API_KEY"]
    assert (google["key_is_set"], google["package"], google["is_installed"]) == (False, "httpx2", True)
    can = {name: google[name] for name in ("tools", "images", "schema", "streams", "text_mode")}
    assert can == {"tools": "api", "images": True, "schema": True, "streams": True, "text_mode": True}
    assert listed["compatible:MODEL"]["address"] is None
    assert not listed["ollama:MODEL"]["needs_key"]
    assert (listed["embedded"]["tools"], listed["embedded"]["text_mode"]) == ("own", False)
    assert listed["local:FOLDER"]["images"] is None
    assert json.loads(ferrule("models", "google", "--json", **KEYS).stdout) == google


def test_the_list_agrees_with_the_models() -> None:
    for name in KNOWN:
        row = next(one for one in list_models() if one["name"] == f"{name}:MODEL")
        if KNOWN[name].find_missing_package():
            continue
        model = "anthropic.m-1" if name == "bedrock" else "m-1"
        key = {"access_token": "t"} if name == "vertex" else {"api_key": "k"}
        key |= {"region": "us-east-1"} if name == "bedrock" else {}
        made = make_hosted_model(name, model, base_url="http://127.0.0.1:9/v1", **key).capabilities
        assert row["images"] == made.user_images
        assert row["schema"] == ("output_schema" in made.settings)
        assert made.native_tools


def test_the_options_help_names_every_provider() -> None:
    assert sorted(PROVIDERS.split(", ")) == sorted(one.name for one in KNOWN.values())
    shown = " ".join(ferrule("ask", "--help").stdout.split()).replace("- ", "-")  # a line may end at a hyphen
    assert PROVIDERS in shown


async def test_a_server_without_tools_is_asked_in_the_text() -> None:
    refusal = openai_server.refused(400, "registry.ollama.ai/library/gemma3:4b does not support tools")
    call = openai_server.says(f'<tool_call>{{"name": "calculator", "arguments": {CALL}}}</tool_call>')
    words = openai_server.says("12 × 34 is 408.")
    async with openai_server.server(refusal, call, words, judge=openai_server.lenient) as server:
        done = await asked(server, "ollama:gemma3:4b")
    assert (done.returncode, done.stdout) == (0, ANSWER)
    assert done.stderr == (
        "ferrule: ollama:gemma3:4b: Ollama answered 400: registry.ollama.ai/library/gemma3:4b does not support tools; "
        "the tools are offered in the text instead, as by --mode hermes\n"
    )
