"""The pieces in which servers send calls and reasoning: OpenAI's, and what others make of the format."""

from __future__ import annotations

from typing import Any

import pytest
from openai_server import call, chat, chunk, chunks, lenient, piece, says, server
from scripted_http import Reply

from ferrule.agent.pipeline import model
from ferrule.conversation import Message, Reasoning, Text
from ferrule.events import MessageFinished, Usage
from ferrule.formats.openai import EXTRA
from ferrule.models.openai.chat import OpenAIChat
from ferrule.models.protocol import ModelSettings


async def finished(reply: Reply, provider: str = "compatible", earlier: str = "?") -> MessageFinished:
    async with server(reply, judge=lenient) as listening:
        chosen = OpenAIChat("m", provider, api_key="k", base_url=f"{listening.url}/v1")
        stream = chosen.stream(model(chosen).chat(earlier).conversation, (), ModelSettings())
        events = [event async for event in stream]
        await chosen.aclose()
    assert isinstance(events[-1], MessageFinished)
    return events[-1]


def both(*pieces: dict[str, Any]) -> dict[str, Any]:
    """One delta with several pieces."""
    return {"tool_calls": [entry for one in pieces for entry in one["tool_calls"]]}


LONDON, PARIS = '{"city": "London"}', '{"city": "Paris"}'
TWO = [("sky", LONDON), ("sky", PARIS)]

STREAMS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "two in one chunk": ([both(piece(0, LONDON, "sky", "a"), piece(1, PARIS, "sky", "b"))], TWO),
    "the id only with the first piece": (
        [piece(0, "", "sky", "a"), piece(0, LONDON[:5]), piece(0, LONDON[5:]), piece(1, PARIS, "sky", "b")],
        TWO,
    ),
    "the id with every piece": (
        [piece(0, LONDON[:5], "sky", "a"), piece(0, LONDON[5:], None, "a"), piece(1, PARIS, "sky", "b")],
        TWO,
    ),
    "another id with every piece": (
        [piece(0, LONDON[:5], "sky", "a"), piece(0, LONDON[5:], None, "z"), piece(1, PARIS, "sky", "b")],
        TWO,
    ),
    "in turns": (
        [
            both(piece(0, "", "sky", "a"), piece(1, "", "sky", "b")),
            both(piece(1, PARIS[:4]), piece(0, LONDON[:9])),
            both(piece(0, LONDON[9:]), piece(1, PARIS[4:])),
        ],
        TWO,
    ),
    "no index, with ids": ([piece(None, LONDON, "sky", "a"), piece(None, PARIS, "sky", "b")], TWO),
    "no index, pieces without ids": (
        [piece(None, LONDON[:3], "sky", "a"), piece(None, LONDON[3:]), piece(None, PARIS, "sky", "b")],
        TWO,
    ),
    "no index and no ids": ([both(piece(None, LONDON, "sky"), piece(None, PARIS, "sky"))], TWO),
    "always index 0": ([piece(0, LONDON, "sky", "a"), piece(0, PARIS, "sky", "b")], TWO),
    "a name in pieces": ([piece(0, None, "get_", "a"), piece(0, None, "sky"), piece(0, LONDON)], [("get_sky", LONDON)]),
    "a name again in every piece": (
        [piece(0, "", "sky", "a"), piece(0, LONDON[:4], "sky"), piece(0, LONDON[4:], "sky")],
        [("sky", LONDON)],
    ),
    "arguments as an object": ([piece(0, {"city": "Zürich"}, "sky", "a")], [("sky", '{"city": "Zürich"}')]),
    "no arguments": ([piece(0, None, "now", "a"), piece(1, "", "now", "b")], [("now", "{}"), ("now", "{}")]),
    "the legacy function_call": (
        [{"function_call": {"name": "sky", "arguments": ""}}, {"function_call": {"arguments": LONDON}}],
        [("sky", LONDON)],
    ),
}


@pytest.mark.parametrize("finish", ["tool_calls", "stop", "function_call"])
@pytest.mark.parametrize("name", STREAMS)
async def test_calls_in_any_pieces(name: str, finish: str) -> None:
    deltas, expected = STREAMS[name]
    end = await finished(chat(*deltas, finish=finish))
    assert [(one.name, one.arguments) for one in end.message.calls] == expected
    assert len({one.id for one in end.message.calls}) == len(expected)
    assert end.stop == "calls"


async def test_text_before_and_after_a_call_keeps_its_place() -> None:
    end = await finished(chat({"content": "a"}, piece(0, None, "now", "x"), {"content": "b"}))
    assert [type(part).__name__ for part in end.message.parts] == ["Text", "ToolCall", "Text"]


@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": "Hm"}, {"reasoning_content": "."}, {"content": "Yes."}],
        [{"reasoning": "Hm"}, {"reasoning": "."}, {"content": "Yes."}],
        [{"reasoning": "Hm.", "reasoning_content": "Hm."}, {"content": "Yes."}],
        [{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}, {"content": "Yes."}],
        [{"reasoning_content": "Hm.", "content": [{"type": "text", "text": "Yes."}]}],
    ],
)
async def test_reasoning_by_any_name(deltas: list[dict[str, Any]]) -> None:
    assert (await finished(chat(*deltas))).message.parts == (Reasoning("Hm."), Text("Yes."))


async def test_openrouters_details_are_joined_and_go_back_as_they_came() -> None:
    deltas = [
        {"reasoning": "Hm", "reasoning_details": [{"type": "reasoning.text", "text": "Hm", "index": 0}]},
        {"reasoning": ".", "reasoning_details": [{"type": "reasoning.text", "text": ".", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.text", "signature": "sealed", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "xyz", "index": 1}]},
        {"content": "Yes."},
    ]
    details = [
        {"type": "reasoning.text", "text": "Hm.", "index": 0, "signature": "sealed"},
        {"type": "reasoning.encrypted", "data": "xyz", "index": 1},
    ]
    async with server(chat(*deltas), says("Sure."), says("Sure."), judge=lenient) as listening:
        chosen = OpenAIChat("m", "openrouter", api_key="k", base_url=f"{listening.url}/v1")
        run = await model(chosen).chat("?").run()
        await model(chosen).chat(run.conversation).chat("Sure?").run()
        sent = listening.requests[1].body["messages"][1]
        assert (sent["reasoning_details"], sent["reasoning"]) == (details, "Hm.")
        said = run.conversation.messages[1]
        edited = Message("assistant", (Reasoning("No."), *said.parts[1:]), None, said.extra)
        await model(chosen).chat(type(run.conversation)((run.conversation.messages[0], edited))).chat("Sure?").run()
        assert "reasoning_details" not in listening.requests[2].body["messages"][1]
        await chosen.aclose()
    assert said.extra[EXTRA]["reasoning"] == "Hm."


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2}, Usage(9, 0, 2)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}, Usage(9, 0, 2)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Usage(9, 4, 2)),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"audio_tokens": 3}},
            Usage(9, 0, 2, audio_tokens=3),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cache_write_tokens": 5}},
            Usage(9, 0, 2, cache_write_tokens=5),
        ),
        # OpenAI's answer contains the reasoning; xAI counts it apart.
        (
            {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16}
            | {"completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(9, 0, 7),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 16}
            | {"completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(9, 0, 7),
        ),
    ],
)
async def test_usage(usage: dict[str, Any], expected: Usage) -> None:
    last = [chunk({"content": "Yes."}), chunk({}, "stop"), chunk(usage=usage), b"data: [DONE]\n\n"]
    assert (await finished(Reply(last))).usage == expected
    # Some send what was used so far with every chunk.
    each = [chunk({"content": "Yes."}, usage={"prompt_tokens": 1}), chunk({}, "stop", usage=usage)]
    assert (await finished(Reply(each))).usage == expected


async def test_other_choices_and_odd_chunks_are_passed_over() -> None:
    odd = b'data: {"choices": [{"index": 1, "delta": {"content": "no"}}], "object": "x"}\n\n'
    whole = chunks({"content": "Yes."})
    written = [b": comment\n\n", b'data: {"choices": null}\n\n', odd, *whole]
    assert (await finished(Reply(written))).message.parts == (Text("Yes."),)


async def test_an_id_that_was_used_before_is_told_apart() -> None:
    reply = chat({"tool_calls": [call(0, "{}", "now", "x"), call(1, "{}", "now", "x")]})
    # The same id twice can't mean the same call: each has an index of its own.
    ids = [one.id for one in (await finished(reply)).message.calls]
    assert len(set(ids)) == 2
