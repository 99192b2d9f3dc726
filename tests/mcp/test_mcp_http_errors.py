"""Refusals of a server over HTTP: the error has the status, at the start and in a call, and nothing is logged first."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from mcp_calls import result_of
from scripted_http import Reply, Request, ScriptedServer, json_reply

from ferrule.errors import RegistryError
from ferrule.mcp import MCPServer
from ferrule.mcp.http_bodies import SurrogateEscapes

NOTHING = {"type": "object", "properties": {}}
HTML = Reply([b"<html><body>Go away"], 403, {"content-type": "text/html"})
REFUSALS = [
    (json_reply(403, {"error": "forbidden"}), "HTTP 403 Forbidden: forbidden"),
    (json_reply(429, {"error": {"message": "slow down"}}, retry_after="30"), "429 Too Many Requests: slow down; retry"),
    (Reply([b"upstream down\nat line 3"], 500, {"content-type": "text/plain"}), "500 Internal Server Error: upstream"),
    (HTML, "it answered with HTTP 403 Forbidden"),
    (json_reply(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no key"}}), "no key"),
    (Reply([b"hello"], 200, {"content-type": "text/html"}), "Unexpected content type: text/html"),
    (Reply([b""], 404, {}), "it answered with HTTP 404 Not Found; check the path of the address"),
]


def answer(refusal: Reply, request: Request, refused: str) -> Reply:
    """Answer as a server of the protocol of before 2026, but for the refused method."""
    method = (request.body or {}).get("method", "")
    if not method or refused in method:
        return refusal
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "far", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "look", "inputSchema": NOTHING}]},
    }
    if "id" not in request.body:
        return Reply([], 202, {})
    if method not in results:
        return json_reply(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "unknown"}})
    return json_reply(200, {"jsonrpc": "2.0", "id": request.body["id"], "result": results[method]})


@pytest.mark.parametrize(("refusal", "message"), REFUSALS)
async def test_a_refusal_says_its_status_and_nothing_is_logged_first(
    refusal: Reply, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with ScriptedServer(lambda request: answer(refusal, request, "")) as server:
        with pytest.raises(RegistryError) as error:
            async with MCPServer(f"{server.url}/mcp"):
                pass
    assert message in str(error.value)
    assert "html>" not in str(error.value)
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


@pytest.mark.parametrize(("refusal", "message"), REFUSALS[:3])
async def test_a_call_that_is_refused_tells_the_model_the_status(refusal: Reply, message: str) -> None:
    async with (
        ScriptedServer(lambda request: answer(refusal, request, "tools/call")) as far,
        MCPServer(f"{far.url}/mcp", name="far") as server,
    ):
        refused = await result_of(server, "look")
    assert refused.text.startswith("error: the MCP server 'far' gave no result: it answered with HTTP ")
    assert message in refused.text


async def test_an_address_of_the_older_transport_says_what_to_do() -> None:
    async with ScriptedServer(lambda request: answer(Reply([b""], 405, {}), request, "")) as server:
        address = f"{server.url}/sse"
        with pytest.raises(RegistryError) as error:
            async with MCPServer(address):
                pass
    assert "it answered with HTTP 405 Method Not Allowed; an address that ends with /sse is" in str(error.value)
    assert f"uvx --with 'mcp<2' mcp-proxy {address}`" in str(error.value)


def test_halves_of_surrogate_pairs_are_replaced_wherever_the_pieces_end() -> None:
    text = rb'"a\ud83d b\ud83d\ude00 \\ud83d \\\ud83d\n\udE00\ud83d\ud83d\ude00\u00e9\"'
    wanted = rb'"a\ufffd b\ud83d\ude00 \\ud83d \\\ufffd\n\ufffd\ufffd\ud83d\ude00\u00e9\"'
    for size in range(1, len(text) + 1):
        escapes = SurrogateEscapes()
        repaired = b"".join(escapes.repair(text[at : at + size]) for at in range(0, len(text), size))
        assert repaired + escapes.held == wanted


async def test_an_answer_with_half_a_pair_is_read() -> None:
    body = {"jsonrpc": "2.0", "id": 0, "result": {"content": [{"type": "text", "text": "cut \ud83d"}]}}

    def judge(request: Request) -> Reply:
        if (request.body or {}).get("method") != "tools/call":
            return answer(Reply([], 405, {}), request, "nothing")
        return json_reply(200, body | {"id": request.body["id"]})

    async with ScriptedServer(judge) as far, MCPServer(f"{far.url}/mcp", name="far") as server:
        assert (await result_of(server, "look")).text == "cut \N{REPLACEMENT CHARACTER}"
