"""Claude over the real protocol: conversations with tools, what goes back verbatim, and a server that misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys

import anthropic_server as server
import pytest
from anthropic_server import AnthropicServer, answer, broken, call, redacted, text, thinking
from asking import PIXEL, QUESTION, events_of, look, try_again_at_once
from scripted_http import Reply, cut

from ferrule.agent.pipeline import model
from ferrule.builtin_tools import calculator
from ferrule.capabilities import Loss
from ferrule.conversation import (
    Conversation,
    Image,
    MalformedCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    tool_message,
    user,
)
from ferrule.errors import ModelError, ProviderError, StreamBroken
from ferrule.events import ArgumentsDelta, CallFinished, CallMalformed, MessageFinished, TextDelta, Usage
from ferrule.models.anthropic.model import AnthropicModel
from ferrule.models.gateway import GatewaySettings, Timeouts, configure
from ferrule.models.protocol import ModelSettings
from ferrule.tools.decorator import tool


@contextlib.asynccontextmanager
async def claude(*script, name="claude-sonnet-5", timeouts=None, **options):
    """A model and its server."""
    async with AnthropicServer(*script) as serving:
        try_again_at_once(serving.url, timeouts)
        async with AnthropicModel(name, api_key=server.KEY, base_url=serving.url, **options) as made:
            yield made, serving


async def test_a_question_is_answered_through_a_tool() -> None:
    script = [
        answer(text("Let me see."), call("toolu_1", "calculator", {"expression": "12 * 34"})),
        answer(text("It is 408.")),
    ]
    async with claude(*script) as (made, serving):
        run = await model(made).system("Be brief.").chat("What is 12 * 34?").using(calculator).run()
    assert (run.text, run.stopped) == ("It is 408.", "done")
    run.conversation.check()
    assert run.usage == Usage(66, 40, 14, cache_write_tokens=6)
    first, second = (request.body for request in serving.requests)
    assert first["tools"][0]["name"] == "calculator"
    assert [block["text"] for block in first["system"]] == ["Be brief."]
    result = second["messages"][2]["content"][0]
    assert (result["type"], result["tool_use_id"], result["content"][0]["text"]) == ("tool_result", "toolu_1", "408")
    assert [list(message) for message in second["messages"]] == [["role", "content"]] * 3
    assert not serving.script


async def test_parallel_calls_are_answered_in_one_message_images_among_them() -> None:
    calls = [call("toolu_1", "look", {"at": "it"}), call("toolu_2", "calculator", {"expression": "1 / 0"})]
    async with claude(answer(*calls), answer(text("Seen."))) as (made, serving):
        run = await model(made).chat("Look, and divide.").using(look, calculator).run()
    assert run.text == "Seen."
    seen, failed = serving.requests[1].body["messages"][2]["content"]
    assert [block["type"] for block in seen["content"]] == ["text", "image"]
    assert seen["content"][1]["source"]["media_type"] == "image/png"
    assert "is_error" not in seen
    assert failed["is_error"] is True


async def test_what_was_thought_goes_back_as_it_was_signed() -> None:
    first = [thinking("Multiply.  \n"), redacted("c2VjcmV0"), thinking(" Then add."), text("Well,")]
    first.append(call("toolu_1", "calculator", {"expression": "12 * 34"}))
    async with claude(answer(*first), answer(thinking("Done."), text("408."))) as (made, serving):
        pipeline = model(made).chat("What is 12 * 34?").using(calculator)
        run = await pipeline.run()
        message = run.conversation.messages[1]
        assert message.parts[:2] == (Reasoning("Multiply.  \n Then add."), Text("Well,"))
        sent = serving.requests[1].body["messages"][1]["content"]
        assert sent[:3] == first[:3]
        # Changed, it goes without what was thought, and the API takes it.
        changed = message.with_parts((Reasoning("Guess."), *message.parts[1:]))
        messages = run.conversation.messages
        serving.script.append(answer(text("Yes.")))
        other = Conversation((messages[0], changed, *messages[2:], user("Sure?")))
        await model(made).chat(other).using(calculator).run()
    assert [block["type"] for block in serving.requests[2].body["messages"][1]["content"]] == ["text", "tool_use"]


@pytest.mark.parametrize("size", [1, 2, 7, 64])
async def test_an_answer_reads_the_same_however_it_is_cut(size: int) -> None:
    blocks = [thinking("Käse 🧀?"), text("Zürich — 🏔"), call("toolu_1", "calculator", {"expression": "1 + 1"})]
    whole = b"".join(server.events(*blocks, stop="tool_use"))
    pieces = cut(whole, *range(size, len(whole), size))
    async with claude(Reply([whole]), Reply(pieces)) as (made, _):
        at_once, in_pieces = await events_of(made), await events_of(made)
    assert at_once == in_pieces
    finished = in_pieces[-1]
    assert isinstance(finished, MessageFinished)
    assert finished.message.parts == (
        Reasoning("Käse 🧀?"),
        Text("Zürich — 🏔"),
        ToolCall("toolu_1", "calculator", '{"expression": "1 + 1"}'),
    )
    assert finished.stop == "calls"


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "turn"),
        ("stop_sequence", "turn"),
        ("max_tokens", "length"),
        ("pause_turn", "length"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "context"),
        ("something_new", "error"),
    ],
)
async def test_why_it_stopped(reason: str, stop: str) -> None:
    async with claude(answer(text("So"), stop=reason)) as (made, _):
        assert (await events_of(made))[-1].stop == stop


async def test_a_refusal_says_why(caplog: pytest.LogCaptureFixture) -> None:
    said = server.events(text("I"), stop="refusal")
    details = {"stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": "that is dangerous"}}
    said[-2] = server.event("message_delta", delta=details, usage={"output_tokens": 3})
    caplog.set_level("INFO", "ferrule")
    async with claude(Reply(said)) as (made, _):
        run = await model(made).chat("?").run()
    assert (run.text, run.stopped, run.stop_detail) == ("I", "refusal", "refusal: that is dangerous")
    assert run.losses == (Loss("answer", "Anthropic ended the answer: refusal: that is dangerous"),)
    assert "that is dangerous" in caplog.text


async def test_a_setting_that_nobody_made_is_not_sent() -> None:
    async with claude(answer(text("Yes."))) as (made, serving):
        await model(made).with_(max_tokens=5).chat("?").run()
    assert serving.requests[0].body["max_tokens"] == 5
    assert "temperature" not in serving.requests[0].body


async def test_what_has_no_place_in_a_message_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "ferrule")
    searched = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    async with claude(answer(searched, text("Found."))) as (made, _):
        assert (await events_of(made))[-1].message.parts == (Text("Found."),)
    assert "server_tool_use" in caplog.text


async def test_a_call_that_the_limit_cut_off_is_malformed_and_answered() -> None:
    cut_off = answer(call("toolu_1", "calculator", '{"expression": "12 *'), stop="max_tokens")
    async with claude(cut_off, answer(text("Sorry."))) as (made, serving):
        run = await model(made).chat("?").using(calculator).run()
    malformed = run.conversation.messages[1].parts[0]
    assert isinstance(malformed, MalformedCall)
    assert (malformed.id, malformed.kind) == ("toolu_1", "truncated")
    assert run.text == "Sorry."
    shown = serving.requests[1].body["messages"]
    assert malformed.raw in shown[1]["content"][0]["text"]
    assert shown[2]["role"] == "user"


async def test_arguments_that_are_no_json_are_told_to_the_model() -> None:
    async with claude(answer(call("toolu_1", "calculator", "12 * 34")), answer(text("Sorry."))) as (made, serving):
        run = await model(made).chat("?").using(calculator).run()
    assert run.conversation.messages[2].result.status == "invalid"
    assert serving.requests[1].body["messages"][1]["content"][0]["input"] == {"_invalid": "12 * 34"}


async def test_a_call_without_arguments_has_an_empty_object() -> None:
    @tool
    def now() -> str:
        """The time."""
        return "noon"

    async with claude(answer(call("toolu_1", "now", "")), answer(text("Noon."))) as (made, _):
        run = await model(made).chat("?").using(now).run()
    assert run.conversation.messages[1].parts == (ToolCall("toolu_1", "now", "{}"),)
    assert run.conversation.messages[2].result.text == "noon"


async def test_arguments_given_at_once_are_read() -> None:
    """Servers that speak the protocol without streaming calls put them where the block begins."""
    whole = server.events(call("toolu_1", "calculator", ""))
    opened = {"type": "tool_use", "id": "toolu_1", "name": "calculator", "input": {"expression": "2"}}
    whole[2] = server.event("content_block_start", index=0, content_block=opened)
    async with claude(Reply(whole)) as (made, _):
        finished = (await events_of(made))[-1]
    assert finished.message.parts == (ToolCall("toolu_1", "calculator", '{"expression": "2"}'),)


async def test_an_id_that_comes_again_gets_another() -> None:
    same = call("toolu_1", "calculator", {"expression": "2"})
    async with claude(answer(same), answer(same), answer(text("Two."))) as (made, _):
        run = await model(made).chat("?").using(calculator).run()
    run.conversation.check()
    assert run.text == "Two."


@pytest.mark.parametrize("ending", ["dropped", "closed"])
async def test_a_drop_in_the_middle_of_a_call_is_asked_again(ending) -> None:
    blocks = [text("Let me see."), call("toolu_1", "calculator", {"expression": "12 * 34"})]
    cut_off = broken(*blocks, after=b'"ressi', ending=ending)
    async with claude(cut_off, answer(text("408."))) as (made, _):
        run = await model(made).chat("?").using(calculator).run()
    assert [message.role for message in run.conversation.messages] == ["user", "assistant"]
    assert run.text == "408."
    assert [loss.kind for loss in run.losses] == ["text", "call"]


@pytest.mark.slow
async def test_wherever_an_answer_is_dropped_the_conversation_goes_on() -> None:
    blocks = [
        thinking("Hm."),
        text("So."),
        call("toolu_1", "calculator", {"expression": "2"}),
        call("toolu_2", "f", {}),
    ]
    data = b"".join(server.events(*blocks, stop="tool_use"))
    for place in range(0, len(data), 61):
        async with claude(Reply([data[:place]], ending="dropped"), *[answer(text("Yes."))] * 2) as (made, _):
            try:
                run = await model(made).chat("?").using(calculator).run()
            except StreamBroken:  # after a block began, and before there was anything in it
                run = await model(made).chat("?").using(calculator).run()
            run.conversation.check()
            if run.stopped == "error":  # some of the text, and no call
                run = await model(made).chat(run.conversation).chat("Go on.").using(calculator).run()
        assert (run.text, run.stopped) == ("Yes.", "done"), place


async def test_a_drop_in_the_middle_of_text_keeps_what_was_said() -> None:
    async with claude(broken(text("One, two, three."), after=b'"One, "}}\n\n')) as (made, _):
        events = await events_of(made)
    assert events[0] == TextDelta("One, ")
    assert (events[-1].message.text, events[-1].stop) == ("One, ", "error")


async def test_a_drop_before_anything_was_said_is_tried_again() -> None:
    async with claude(broken(text("One."), after=b"message_start"), answer(text("One."))) as (made, serving):
        assert (await events_of(made))[-1].message.text == "One."
    assert len(serving.requests) == 2


async def test_an_overload_told_in_the_stream_is_tried_again_unless_something_was_passed_on() -> None:
    start, *_ = server.events()
    overloaded = Reply([start, server.error_event("overloaded_error", "Overloaded")])
    late = server.events(text("One"))[:4]
    later = Reply([*late, server.error_event("overloaded_error", "Overloaded")])
    async with claude(overloaded, answer(text("One.")), later) as (made, _):
        assert (await events_of(made))[-1].message.text == "One."
        assert (await events_of(made))[-1].stop == "error"


async def test_a_stall_is_noticed() -> None:
    stalled = broken(text("One, two."), after=b'"One, "}}\n\n', ending="stalled")
    async with claude(stalled, timeouts=Timeouts(silence=0.05)) as (made, _):
        finished = (await events_of(made))[-1]
    assert finished.stop == "error"


async def test_leaving_the_stream_closes_the_connection() -> None:
    stalled = broken(text("One, two."), after=b'"One, "}}\n\n', ending="stalled")
    async with claude(stalled) as (made, serving):
        stream = made.stream(QUESTION, (), ModelSettings())
        async for event in stream:
            assert event == TextDelta("One, ")
            break
        await stream.aclose()
        await asyncio.wait_for(serving.idle(), 30)


@pytest.mark.parametrize(
    "refusal",
    [
        server.error(429, "rate_limit_error", "slow down", retry_after="0"),
        server.error(429, "rate_limit_error", "slow down"),
        server.error(529, "overloaded_error", "Overloaded"),
        server.error(500, "api_error", "oops"),
        Reply([], ending="dropped"),
    ],
    ids=["429 with Retry-After", "429", "529", "500", "dropped"],
)
async def test_what_passes_is_tried_again(refusal: Reply) -> None:
    async with claude(refusal, answer(text("Yes."))) as (made, serving):
        assert (await events_of(made))[-1].message.text == "Yes."
    assert len(serving.requests) == 2


async def test_a_key_that_is_refused_is_named_and_not_tried_again() -> None:
    async with (
        claude() as (_, serving),
        AnthropicModel("claude-sonnet-5", api_key="w", base_url=serving.url) as other,
    ):
        with pytest.raises(ProviderError, match="ANTHROPIC_API_KEY") as refused:
            await events_of(other)
    assert refused.value.status == 401


async def test_a_model_that_there_is_not_is_named() -> None:
    async with claude(name="claude-nothing-5") as (made, _):
        with pytest.raises(ProviderError, match=r"anthropic:claude-nothing-5.*404.*model: claude-nothing-5"):
            await events_of(made)


async def test_a_wrong_content_type_is_told() -> None:
    page = Reply([b"<html>Welcome</html>"], headers={"content-type": "text/html"})
    async with claude(page) as (made, serving):
        with pytest.raises(ProviderError, match="text/html"):
            await events_of(made)
    assert len(serving.requests) == 1


async def test_an_event_that_is_no_json_is_told() -> None:
    odd = Reply([b"event: message_start\ndata: {oops\n\n"])
    async with claude(odd, odd, odd, odd) as (made, _):
        with pytest.raises(ProviderError, match="not JSON"):
            await events_of(made)


def test_the_packages_are_imported_when_they_are_used() -> None:
    packages = {"anthropic", "google.genai", "httpx2"}
    code = (
        f"import ferrule.models.anthropic.model, ferrule.models.google.model, sys; print({packages} & {{*sys.modules}})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


async def test_nobody_listens() -> None:
    async with AnthropicServer() as serving:
        address = serving.url
    configure(address, GatewaySettings(attempts=1))
    async with AnthropicModel("claude-sonnet-5", api_key="k", base_url=address) as made:
        with pytest.raises(ProviderError, match="no connection to"):
            await events_of(made)


def test_without_a_key_or_the_package_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(
        ModelError, match=r"set ANTHROPIC_API_KEY, or give model\(\"anthropic:claude-sonnet-5\", api_key"
    ):
        AnthropicModel("claude-sonnet-5")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ModelError, match=r'pip install "ferrule\[hosted\]"'):
        AnthropicModel("claude-sonnet-5")


async def test_the_settings_arrive() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]}
    settings = ModelSettings(
        max_tokens=500, stop=("END",), choice="calculator", parallel_calls=False,
        extra={"metadata": {"user_id": "u"}},
    )  # fmt: skip
    async with claude(*[answer(text("Yes."))] * 3) as (made, serving):
        async for _ in made.stream(QUESTION, [calculator.spec], settings):
            pass
        await events_of(made, temperature=0.5, top_k=3, output_schema=schema)
        await events_of(made)
    first, second, third = serving.requests
    assert first.body["max_tokens"] == 500
    assert first.body["stop_sequences"] == ["END"]
    assert first.body["metadata"] == {"user_id": "u"}
    assert first.body["tool_choice"] == {"type": "tool", "name": "calculator", "disable_parallel_tool_use": True}
    assert second.body["output_config"]["format"]["schema"]["additionalProperties"] is False
    assert (second.body["temperature"], second.body["top_k"]) == (0.5, 3)
    assert second.headers["anthropic-version"] == "2023-06-01"
    assert third.body["max_tokens"] == 32_000
    assert set(third.body) == {"model", "max_tokens", "messages", "stream"}


@pytest.mark.parametrize(
    ("name", "effort", "expected"),
    [
        ("claude-sonnet-5", "high", ({"type": "adaptive", "display": "summarized"}, {"effort": "high"})),
        ("claude-opus-4-6", "minimal", ({"type": "adaptive", "display": "summarized"}, {"effort": "low"})),
        ("claude-haiku-4-5-20251001", "low", ({"type": "enabled", "budget_tokens": 2048}, None)),
        ("claude-older-4-5", "high", ({"type": "enabled", "budget_tokens": 24_576}, None)),
        ("claude-latest", "none", ({"type": "disabled"}, None)),
    ],
)
async def test_effort(name, effort, expected) -> None:
    async with claude(answer(text("Yes.")), name=name) as (made, serving):
        await events_of(made, effort=effort)
    body = serving.requests[0].body
    assert (body["thinking"], body.get("output_config")) == expected


async def test_what_can_not_be_honoured_is_refused_by_name() -> None:
    async with claude(name="claude-haiku-4-5") as (made, serving):
        with pytest.raises(ModelError, match="seed"):
            await events_of(made, seed=1)
        with pytest.raises(ModelError, match="no tools are offered"):
            await events_of(made, choice="required")
        with pytest.raises(ModelError, match="calculator"):
            await events_of(made, tools=[calculator.spec], choice="calculater")
        with pytest.raises(ModelError, match="max_tokens"):
            await events_of(made, effort="high", max_tokens=1000)
    assert not serving.requests


async def test_a_growing_conversation_is_marked_where_it_was_marked_before() -> None:
    script = [answer(call(f"toolu_{n}", "calculator", {"expression": "2"})) for n in (1, 2)]
    async with claude(*script, answer(text("Yes.")), answer(text("Yes."))) as (made, serving):
        await model(made).system("Be brief.").chat("?").using(calculator).run()
        made.cache = False
        await events_of(made)
    marked = [_marks(request.body) for request in serving.requests]
    assert marked == [
        {"tools 0", "system 0", "message 0"},
        {"tools 0", "system 0", "message 0", "message 2"},
        {"tools 0", "system 0", "message 2", "message 4"},
        set(),
    ]


def _marks(body) -> set[str]:
    found = {
        f"{key} {n}" for key in ("tools", "system") for n, b in enumerate(body.get(key, ())) if "cache_control" in b
    }
    return found | {f"message {n}" for n, m in enumerate(body["messages"]) if "cache_control" in m["content"][-1]}


async def test_a_longer_conversation_begins_as_the_shorter_one_did() -> None:
    script = [answer(call(f"toolu_{n}", "calculator", {"expression": "2"})) for n in (1, 2)]
    async with claude(*script, answer(text("Yes.")), cache=False) as (made, serving):
        await model(made).chat("?").using(calculator).run()
    first, second, third = (request.body["messages"] for request in serving.requests)
    assert third[: len(second)] == second
    assert second[: len(first)] == first


async def test_names_that_anthropic_does_not_allow_are_mapped_both_ways() -> None:
    @tool(name="files.read")
    def read(path: str) -> str:
        """Read a file."""
        return f"what is in {path}"

    async with claude(answer(text("Hm."))) as (made, serving):
        await model(made).chat("?").using(read).run()
        offered = serving.requests[0].body["tools"][0]["name"]
        serving.script += [answer(call("toolu_1", offered, {"path": "a"})), answer(text("Read."))]
        run = await model(made).chat("?").using(read).run()
    assert run.conversation.messages[2].result.text == "what is in a"
    assert serving.requests[-1].body["messages"][1]["content"][0]["name"] == offered


async def test_events_of_calls() -> None:
    blocks = [call("toolu_1", "calculator", {"expression": "1"}), call("toolu_2", "calculator", '{"expr')]
    async with claude(answer(*blocks, stop="max_tokens")) as (made, _):
        events = await events_of(made)
    assert [type(event) for event in events if isinstance(event, CallFinished | CallMalformed)] == [
        CallFinished,
        CallMalformed,
    ]
    pieces = [event.json_fragment for event in events if isinstance(event, ArgumentsDelta) and event.index == 0]
    arguments = "".join(pieces)
    assert json.loads(arguments) == {"expression": "1"}


async def test_a_conversation_from_elsewhere_is_taken() -> None:
    elsewhere = Conversation(
        (
            user("Look.", Image(PIXEL)),
            assistant(Reasoning("unsigned"), ToolCall("call|1/ü", "look", '{"at": "it"}')),
            tool_message(ToolResult("call|1/ü", "look", (Text(""), Image(PIXEL)))),
            assistant("", ToolCall("call_2", "gone.tool", "nonsense")),
            tool_message(ToolResult("call_2", "gone.tool", (), "unknown_tool")),
            user("And?"),
        )
    )
    async with claude(answer(text("Well."))) as (made, _):
        assert (await events_of(made, elsewhere))[-1].message.text == "Well."


async def test_one_model_serves_several_event_loops() -> None:
    async with claude(answer(text("One.")), answer(text("Two."))) as (made, _):
        assert (await events_of(made))[-1].message.text == "One."

        async def there():
            events = await events_of(made)
            await made.aclose()
            return events

        other = await asyncio.to_thread(asyncio.run, there())
    assert other[-1].message.text == "Two."
