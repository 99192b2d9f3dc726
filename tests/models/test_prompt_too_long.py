"""A prompt that a provider refuses as too long: the conversation is shortened, or another model is asked."""

from __future__ import annotations

from typing import Any

import anthropic_server
import google_server
import openai_server
import pytest
from scripted_http import Reply, Request, ScriptedServer, json_reply

from ferrule import Conversation, assistant, model, user
from ferrule.models.failures import explain_status
from ferrule.models.fallback import FallbackModel
from ferrule.models.naming import make_hosted_model
from ferrule.models.protocol import Model
from ferrule.models.scripted import ScriptedModel
from tables import each_case

OPENAI = "This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 tokens."
RESPONSES = "Your input exceeds the context window of this model. Please adjust your input and try again."
ANTHROPIC = "prompt is too long: 208310 tokens > 200000 maximum"
GOOGLE = "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)."

REFUSALS: dict[str, Reply] = {
    "openai": openai_server.refused(400, OPENAI, "context_length_exceeded"),
    "openai-responses": openai_server.refused(400, RESPONSES, "context_length_exceeded"),
    "anthropic": json_reply(400, {"type": "error", "error": {"type": "invalid_request_error", "message": ANTHROPIC}}),
    "google": json_reply(400, {"error": {"code": 400, "message": GOOGLE, "status": "INVALID_ARGUMENT"}}),
}
ANSWERS: dict[str, Reply] = {
    "openai": openai_server.says("Yes."),
    "openai-responses": openai_server.responses(openai_server.message_item("Yes.")),
    "anthropic": Reply(anthropic_server.events(anthropic_server.text("Yes."))),
    "google": Reply(google_server.chunks(google_server.text("Yes."))),
}
LONG = Conversation(tuple(one for number in range(4) for one in (user(f"Question {number}."), assistant("Answer."))))


def lenient(_: Request) -> None:
    """Take anything."""


def make(provider: str, server: ScriptedServer) -> Model:
    path = {"openai": "/v1", "openai-responses": "/v1"}.get(provider, "")
    return make_hosted_model(provider, "m", api_key="test-key", base_url=f"{server.url}{path}")


@pytest.mark.parametrize("provider", REFUSALS)
async def test_the_oldest_turns_are_left_out_and_the_model_is_asked_again(provider: str) -> None:
    async with (
        ScriptedServer(lenient, REFUSALS[provider], REFUSALS[provider], ANSWERS[provider]) as server,
        model(make(provider, server)) as asked,
    ):
        run = await asked.chat(LONG).chat("And now?").run()
    assert (run.stopped, run.text) == ("done", "Yes.")
    # Five turns, of which half are left out twice.
    assert [message.text for message in run.conversation.messages] == ["Question 3.", "Answer.", "And now?", "Yes."]
    assert [loss.kind for loss in run.losses] == ["text", "turns", "turns"]


async def test_an_error_in_the_middle_of_the_stream_counts_as_well() -> None:
    error = {"code": "context_length_exceeded", "message": RESPONSES}
    failed = openai_server.event({"type": "response.failed", "response": {"status": "failed", "error": error}})
    async with (
        ScriptedServer(lenient, Reply([failed]), ANSWERS["openai-responses"]) as server,
        model(make("openai-responses", server)) as asked,
    ):
        run = await asked.chat(LONG).chat("And now?").run()
    assert (run.stopped, run.text, len(run.conversation)) == ("done", "Yes.", 6)


async def test_a_single_turn_is_not_cut_and_the_provider_is_quoted() -> None:
    async with ScriptedServer(lenient, REFUSALS["openai"]) as server, model(make("openai", server)) as asked:
        run = await asked.chat("A long question.").run()
    assert (run.stopped, len(run.conversation)) == ("context", 1)
    assert OPENAI in run.losses[0].detail


async def test_a_fallback_is_asked_before_anything_is_left_out() -> None:
    async with ScriptedServer(lenient, REFUSALS["openai"]) as server:
        large = ScriptedModel("Yes.")
        async with model(FallbackModel(make("openai", server), large)) as asked:
            run = await asked.chat(LONG).chat("And now?").run()
    assert (run.text, len(run.conversation)) == ("Yes.", 10)
    large.assert_used_up()


async def test_the_last_fallback_has_the_conversation_shortened() -> None:
    replies = (REFUSALS["openai"], REFUSALS["openai"], ANSWERS["openai"])
    async with (
        ScriptedServer(lenient, *replies) as server,
        model(FallbackModel(make("openai", server), make("openai", server))) as asked,
    ):
        run = await asked.chat(LONG).chat("And now?").run()
    assert (run.stopped, run.text, len(run.conversation)) == ("done", "Yes.", 6)


@each_case(
    ("error", "is_too_long"),
    [
        ({"message": f"'max_tokens' or 'max_completion_tokens' is too large: 9000. {OPENAI}"}, False),
        ({"message": "the request exceeds the available context size", "type": "exceed_context_size_error"}, True),
        ({"message": "Please reduce the length.", "code": "context_length_exceeded"}, True),
        ({"message": "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"}, True),
        ({"message": "This model's maximum prompt length is 131072 but the request contains 200000 tokens."}, True),
        ({"message": "litellm.ContextWindowExceededError: litellm.BadRequestError: too long", "code": "400"}, True),
        ({"message": "messages.0: content is missing"}, False),
        ({"message": "Invalid 'messages[0].name': string too long."}, False),
    ],
)
def test_which_refusals_mean_it(error: dict[str, Any], is_too_long: bool) -> None:
    failure = explain_status(400, {}, {"error": error}, "openai:m: OpenAI", "check the key")
    assert (failure.kind, failure.is_too_long) == ("bad", is_too_long)
