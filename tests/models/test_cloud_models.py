"""Azure, Bedrock and Vertex AI, by the official packages, against servers on loopback."""

from __future__ import annotations

import base64
import binascii
import json
import struct

import openai_server
import pytest
from anthropic_server import answer, text
from asking import QUESTION, events_of, try_again_at_once
from google_server import answer as gemini_answer
from google_server import text as gemini_text
from scripted_http import Reply, ScriptedServer, json_reply

from ferrule import calculator, model
from ferrule.errors import ModelError, ProviderError
from ferrule.models.naming import make_hosted_model
from ferrule.models.providers import PROVIDERS


@pytest.fixture(scope="module", autouse=True)
def _packages() -> None:
    """Import what the tests need, which takes seconds, where they are run only."""
    for package in ("openai", "anthropic", "boto3", "google.auth"):
        pytest.importorskip(package)


CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
VARIABLES = (
    "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_AD_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
    "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL", "GOOGLE_CLOUD_PROJECT", "CLOUD_ML_REGION",
    "GOOGLE_CLOUD_LOCATION", "ANTHROPIC_VERTEX_PROJECT_ID", "AWS_PROFILE",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch, tmp_path):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def take_all(_) -> None:
    return None


def encode_for_aws(reply: Reply) -> Reply:
    """An answer in the event stream of AWS, in place of server-sent events."""
    pieces = []
    for line in b"".join(reply.pieces).decode().splitlines():
        if line.startswith("data: "):
            payload = json.dumps({"bytes": base64.b64encode(line[6:].encode()).decode()}).encode()
            headers = b"".join(
                bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
                for name, value in ((b":message-type", b"event"), (b":event-type", b"chunk"))
            )
            prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
            prelude += struct.pack(">I", binascii.crc32(prelude))
            message = prelude + headers + payload
            pieces.append(message + struct.pack(">I", binascii.crc32(message)))
    return Reply(pieces, headers={"content-type": "application/vnd.amazon.eventstream"})


CALL = openai_server.calls(("call_a", "calculator", '{"expression": "12 * 34"}'))


async def test_azure_answers_by_its_deployment_and_version() -> None:
    async with ScriptedServer(take_all, CALL, openai_server.says("It is ", "408.")) as server:
        asked = model("azure:my-gpt", api_key="azure-key", base_url=server.url).chat("12 * 34?").using(calculator)
        async with asked:
            run = await asked.run()
    assert (run.text, run.model, run.stopped) == ("It is 408.", "azure:my-gpt", "done")
    assert run.usage.cached_tokens == 16
    first = server.requests[0]
    assert first.path == "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"
    assert first.headers["api-key"] == "azure-key"
    assert first.body["tools"][0]["function"]["name"] == "calculator"


async def test_azure_signs_in_with_tokens() -> None:
    async with ScriptedServer(take_all, openai_server.says("Hello.")) as server:
        made = model(
            "azure:my-gpt", token_provider=lambda: "entra-token", base_url=server.url, api_version="2025-01-01"
        )
        async with made:
            assert (await made.chat("Hi").run()).text == "Hello."
    assert server.requests[0].headers["authorization"] == "Bearer entra-token"
    assert server.requests[0].path.endswith("api-version=2025-01-01")


async def test_a_client_of_ones_own_is_used_as_it_is() -> None:
    from openai import AsyncAzureOpenAI

    async with ScriptedServer(take_all, openai_server.says("Hello."), openai_server.says("Hello.")) as server:
        client = AsyncAzureOpenAI(azure_endpoint=server.url, api_key="own", api_version="2024-06-01")
        async with model("azure:my-gpt", client=client) as made:
            assert (await made.chat("Hi").run()).text == "Hello."
        assert not client.is_closed()
        await client.close()
    assert server.requests[0].headers["api-key"] == "own"


async def test_bedrock_answers_in_the_event_stream_of_aws() -> None:
    script = [encode_for_aws(answer(text("It is "), text("408.")))]
    async with ScriptedServer(take_all, *script) as server:
        made = model(f"bedrock:{CLAUDE}", api_key="bedrock-key", base_url=server.url, region="us-west-2")
        async with made:
            run = await made.chat("12 * 34?").using(calculator).run()
    assert run.text == "It is 408."
    assert run.usage.sampled_tokens > 0
    (request,) = server.requests
    assert request.path == f"/model/{CLAUDE}/invoke-with-response-stream"
    assert request.headers["authorization"] == "Bearer bedrock-key"
    assert request.body["anthropic_version"]
    assert "model" not in request.body


async def test_bedrock_signs_with_aws_credentials(monkeypatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    async with ScriptedServer(take_all, encode_for_aws(answer(text("Hello.")))) as server:
        made = model(f"bedrock:{CLAUDE}", base_url=server.url, region="eu-central-1")
        async with made:
            assert (await made.chat("Hi").run()).text == "Hello."
    signed = server.requests[0].headers["authorization"]
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-central-1/bedrock/aws4_request" in signed


async def test_vertex_serves_claude() -> None:
    async with ScriptedServer(take_all, answer(text("Hello."))) as server:
        options = {"project": "my-project", "region": "europe-west1", "access_token": "google-token"}
        async with model("vertex:claude-sonnet-4-5@20250929", base_url=f"{server.url}/v1", **options) as made:
            assert (await made.chat("Hi").run()).text == "Hello."
    (request,) = server.requests
    place = "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models"
    assert request.path.startswith(f"{place}/claude-sonnet-4-5@20250929:streamRawPredict".replace("@", "%40")) or (
        request.path.startswith(f"{place}/claude-sonnet-4-5@20250929:streamRawPredict")
    )
    assert request.headers["authorization"] == "Bearer google-token"


@pytest.mark.parametrize("kind", ["token", "credentials"])
async def test_vertex_serves_gemini(kind) -> None:
    from google.oauth2.credentials import Credentials

    signed = {"access_token": "google-token"} if kind == "token" else {"credentials": Credentials("google-token")}
    async with ScriptedServer(take_all, gemini_answer(gemini_text("Hello."))) as server:
        options = {"project": "my-project", "region": "europe-west1", "base_url": server.url}
        async with model("vertex:gemini-2.5-pro", **options, **signed) as made:
            assert (await made.chat("Hi").run()).text == "Hello."
    (request,) = server.requests
    place = "/v1/projects/my-project/locations/europe-west1/publishers/google/models"
    assert request.path == f"{place}/gemini-2.5-pro:streamGenerateContent?alt=sse"
    assert request.headers["authorization"] == "Bearer google-token"


async def test_a_temperature_is_sent_in_a_version_that_takes_it() -> None:
    async with ScriptedServer(take_all, *[encode_for_aws(answer(text("Hello.")))] * 2) as server:
        made = model(f"bedrock:{CLAUDE}", api_key="k", base_url=server.url, region="us-east-1")
        async with made:
            await made.with_(temperature=0.5).chat("Hi").run()
            await made.chat("Hi").run()
    cold, plain = (request.body for request in server.requests)
    assert (cold["temperature"], cold["anthropic_version"]) == (0.5, "bedrock-2023-05-31")
    assert plain["anthropic_version"] != "bedrock-2023-05-31"


MADE = {
    "azure": lambda url: model("azure:m", api_key="k", base_url=url),
    "bedrock": lambda url: model(f"bedrock:{CLAUDE}", api_key="k", base_url=url, region="us-east-1"),
    "vertex": lambda url: model("vertex:claude-sonnet-5", base_url=url, project="p", access_token="t"),
    "gemini": lambda url: model("vertex:gemini-3-pro", base_url=url, project="p", access_token="t"),
}


@pytest.mark.parametrize("name", MADE)
async def test_what_the_cloud_refuses_is_explained_and_an_overload_is_tried_again(name) -> None:
    busy = json_reply(429, {"error": {"message": "slow down", "type": "rate_limit_error"}})
    refused = json_reply(403, {"error": {"message": "not allowed here", "type": "permission_error"}})
    async with ScriptedServer(take_all, busy, refused) as server:
        try_again_at_once(server.url)
        async with MADE[name](server.url) as made:
            with pytest.raises(ProviderError, match="not allowed here") as caught:
                await events_of(made.model, QUESTION)
    assert caught.value.status == 403
    assert len(server.requests) == 2


@pytest.mark.parametrize("name", MADE)
async def test_a_server_that_is_not_there_is_no_connection(name) -> None:
    try_again_at_once("http://127.0.0.1:9")
    async with MADE[name]("http://127.0.0.1:9") as made:
        with pytest.raises(ProviderError, match="no connection to"):
            await events_of(made.model, QUESTION)


async def test_an_error_in_the_middle_of_an_answer_is_the_providers() -> None:
    broken = Reply(
        [b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "too busy"}}\n\n']
    )
    async with ScriptedServer(take_all, *[broken] * 8) as server:
        try_again_at_once(server.url)
        async with MADE["vertex"](server.url) as made:
            with pytest.raises(ProviderError, match="too busy"):
                await events_of(made.model, QUESTION)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("azure:m", {}, "no address for azure:m: set AZURE_OPENAI_ENDPOINT"),
        ("azure:m", {"base_url": "https://x.example"}, "no key for Azure OpenAI: set AZURE_OPENAI_API_KEY"),
        ("bedrock:meta.llama3-1", {}, "only Anthropic's models of Bedrock can be used"),
        ("vertex:gemini-3-pro", {"access_token": "t"}, "no project for vertex:gemini-3-pro: set GOOGLE_CLOUD_PROJECT"),
        ("vertex:gemini-3-pro", {}, "no credentials for vertex:gemini-3-pro: run gcloud auth"),
    ],
)
def test_what_is_missing_is_named_with_what_to_do(name, options, message) -> None:
    with pytest.raises(ModelError, match=message):
        model(name, **options)


@pytest.mark.parametrize("name", ["azure", "bedrock", "vertex"])
def test_a_missing_package_is_named_with_its_extra(name) -> None:
    from dataclasses import replace

    lacking = replace(PROVIDERS[name], packages=("httpx2", "no_such_package"))
    with pytest.raises(ModelError, match=rf'needs the module no_such_package: pip install "ferrule.{name}.'):
        make_hosted_model(lacking, CLAUDE)
