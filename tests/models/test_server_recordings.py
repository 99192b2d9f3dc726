"""Answers on which servers and ferrule disagreed, as they come over the wire: `server_streams.jsonl`, one a line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from openai_server import event, lenient
from scripted_http import Reply, ScriptedServer, json_reply

from ferrule import Image, model, tool
from ferrule.conversation import Conversation, Text, user
from ferrule.errors import ProviderError

RECORDINGS = [json.loads(line) for line in Path(__file__).with_name("server_streams.jsonl").read_text().splitlines()]


@dataclass
class Weather:
    """The weather."""

    rain: bool


def read_reply(recorded: dict[str, Any]) -> Reply:
    """One answer: an error or a whole answer as JSON, or the events of a stream, which then ends."""
    if "json" in recorded:
        return json_reply(recorded["status"], recorded["json"])
    pieces = [b"data: [DONE]\n\n" if one == "[DONE]" else event(one, one.get("type", "")) for one in recorded["events"]]
    return Reply(pieces, recorded["status"])


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda one: f"{one['server']}: {one['name']}")
async def test_each(recording: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    ran = []

    @tool
    def sky(city: str) -> str:
        """Tell the weather."""
        ran.append(city)
        return f"rain in {city}"

    expected = recording["expect"]
    async with ScriptedServer(lenient, *map(read_reply, recording["replies"])) as server:
        base_url = server.url if recording["provider"] == "anthropic" else f"{server.url}/v1"
        pipeline = model(f"{recording['provider']}:m", api_key="k", base_url=base_url)
        parts = (Text("Is it raining?"), *([Image(b"\x89PNG", "image/png")] if recording.get("image") else []))
        pipeline = pipeline.chat(Conversation((user(*parts),)))
        if recording.get("tools"):
            pipeline = pipeline.using(sky, mode=recording.get("mode", "auto"))
        if "choice" in recording:
            pipeline = pipeline.with_(choice=recording["choice"])
        if recording.get("schema"):
            pipeline = pipeline.parse_as(Weather)
        if "error" in expected:
            with pytest.raises(ProviderError, match=expected["error"]):
                await pipeline.run()
        else:
            run = await pipeline.run()
            calls = [call for message in run.conversation.messages for call in message.calls]
            found = {
                "stopped": run.stopped,
                "text": run.text,
                "calls": [[call.name, json.loads(call.arguments)] for call in calls] if "calls" in expected else None,
                "output": {"rain": run.output.rain} if "output" in expected else None,
            }
            assert {name: found[name] for name in expected if name in found} == {
                name: value for name, value in expected.items() if name in found
            }
            if "says" in expected:
                assert expected["says"] in f"{run.error} {caplog.text} {run.conversation.messages}"
        assert len(server.requests) == expected.get("requests", len(recording["replies"]) - len(server.script))
        assert len(ran) == expected.get("ran", len(expected.get("calls", ())))
        if "first_request_lacks" in expected:
            assert expected["first_request_lacks"] not in server.requests[0].body
