"""Recordings: what is asked is written down, and replayed as it streamed, without the model."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import openai_server
import pytest

from ferrule import Image, ToolCall, calculator, model, record, tool, user
from ferrule.conversation import Conversation, assistant
from ferrule.errors import ModelError, ProviderError, RequestNotRecorded, SettingsError
from ferrule.events import MessageFinished, TextDelta
from ferrule.models.protocol import ModelSettings
from ferrule.models.scripted import EchoModel, ScriptedModel

CALL = ToolCall("call_a", "calculator", '{"expression": "12 * 34"}')


@pytest.fixture(autouse=True)
def _no_mode(monkeypatch):
    monkeypatch.delenv("FERRULE_RECORD", raising=False)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "talk.jsonl"


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def first_messages(path: Path) -> list[str]:
    """The first message of each request, in the order of the file."""
    shared = {row["id"]: row["value"] for row in rows(path) if row["type"] == "shared"}
    requests = [row["messages"] for row in rows(path) if row["type"] == "exchange"]
    return [shared[names[0]]["parts"][0]["text"] for names in requests]


async def events_of(asked, *texts, settings=None):
    conversation = Conversation((user(*texts),))
    return [event async for event in asked.stream(conversation, (), settings or ModelSettings())]


async def test_a_run_with_tools_is_replayed_without_a_key_and_a_network(path, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", openai_server.KEY)
    answers = (
        openai_server.calls(("call_a", "calculator", '{"expression": "12 * 34"}')),
        openai_server.says("It is ", "408."),
    )
    async with openai_server.server(*answers) as server:
        address = f"{server.url}/v1"
        asked = model("openai:m", record=path, base_url=address)
        first = await asked.chat("12 * 34?").using(calculator).run()
        await asked.model.aclose()
    monkeypatch.delenv("OPENAI_API_KEY")
    again = model("openai:m", record=path).chat("12 * 34?").using(calculator)
    async with again.stream() as run:
        events = [event async for event in run]
    assert run.conversation.messages == first.conversation.messages
    assert (run.text, run.usage, run.model, run.stopped) == ("It is 408.", first.usage, "openai:m", "done")
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["It is ", "408."]
    written = rows(path)
    kinds = [row["value"]["role"] if "parts" in row.get("value", ()) else row["type"] for row in written]
    assert kinds == ["recording", "model", "user", "shared", "exchange", "tool", "exchange"]
    # The second request is written as what it adds to the first.
    assert written[6]["messages"] == [written[2]["id"], written[4]["id"], written[5]["id"]]
    assert written[6]["tools"] == written[4]["tools"] == written[3]["id"]


async def test_one_line_replays_the_only_model_of_a_file(path) -> None:
    await model(record(path, ScriptedModel("Hello."))).chat("Hi").run()
    run = await model(record(path)).chat("Hi").run()
    assert (run.text, run.model) == ("Hello.", "scripted")


async def test_a_request_that_was_not_recorded_is_compared_with_the_nearest(path) -> None:
    recorded = model(record(path, ScriptedModel("Rain.", "Cold."))).with_(temperature=0.2)
    await recorded.chat("How is the weather in Paris?").run()
    await recorded.chat("How cold is it in Oslo in winter, and does it snow?").run()
    asked = model(record(path)).with_(temperature=0.7).chat("How is the weather in Rome?")
    with pytest.raises(RequestNotRecorded) as caught:
        await asked.run()
    assert str(caught.value).splitlines() == [
        f"{path} holds no answer of scripted to this request. The nearest of 2, row 5, differs:",
        "  message 0 (user): recorded 'How is the weather in Paris?', now 'How is the weather in Rome?'",
        "  setting temperature: recorded 0.2, now 0.7",
    ]


async def test_what_a_tool_returned_and_how_it_is_offered_is_compared(path) -> None:
    def look_up(text: str, description: str):
        @tool(name="look_up", description=description)
        def look_up(city: str) -> str:
            return text

        return look_up

    script = ToolCall("a", "look_up", '{"city": "Rome"}'), "Warm."
    await model(record(path, ScriptedModel(*script))).chat("Rome?").using(look_up("20 °C", "Look it up.")).run()
    replayed = model(record(path)).chat("Rome?")
    with pytest.raises(
        RequestNotRecorded, match=r"message 2 .tool.: recorded 'look_up .a. ok: 20 °C', now 'look_up .a. ok: 21 °C'"
    ):
        await replayed.using(look_up("21 °C", "Look it up.")).run()
    with pytest.raises(RequestNotRecorded, match=r"tool look_up, description: recorded 'Look it up.', now 'Find it.'"):
        await replayed.using(look_up("20 °C", "Find it.")).run()
    with pytest.raises(RequestNotRecorded, match=r"tool look_up is not offered any more(.|\n)*tool calculator is new"):
        await replayed.using(calculator).run()


async def test_many_differences_are_counted(path) -> None:
    long = Conversation(tuple(message for at in range(6) for message in (user(f"{at}?"), assistant(f"{at}!"))))
    await model(record(path, EchoModel())).chat(long).chat("?").run()
    other = Conversation(tuple(message for at in range(6) for message in (user(f"{at}??"), assistant(f"{at}!!"))))
    with pytest.raises(RequestNotRecorded, match="… and 7 more differences"):
        await model(record(path)).chat(other).chat("?").run()


async def test_a_missing_key_is_named_beside_what_differs(path, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", openai_server.KEY)
    async with openai_server.server(openai_server.says("Hello.")) as server:
        asked = model("openai:m", record=path, base_url=f"{server.url}/v1")
        await asked.chat("Hi").run()
        await asked.model.aclose()
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(RequestNotRecorded, match=r"recorded 'Hi', now 'Ho'\nIt can't be asked: no key for OpenAI"):
        await model("openai:m", record=path).chat("Ho").run()


async def test_once_asks_only_what_is_new(path) -> None:
    await model(record(path, ScriptedModel("One."))).chat("1").run()
    more = ScriptedModel("Two.")
    both = model(record(path, more))
    assert [run.text for run in await both.run_batch(["1", "2"])] == ["One.", "Two."]
    more.assert_used_up()
    assert first_messages(path) == ["1", "2"]


async def test_refresh_replaces_what_was_recorded_and_nothing_before_an_answer(path) -> None:
    class Down(ScriptedModel):
        async def stream(self, conversation, tools, settings):
            raise ProviderError("out of order", 500)
            yield

    await model(record(path, ScriptedModel("Old.", "Older."))).run_batch(["1", "2"])
    before = path.read_bytes()
    with pytest.raises(ProviderError):
        await model(record(path, Down("x"), mode="refresh")).chat("1").run()
    assert path.read_bytes() == before
    # Several models and tests may refresh one file: only the first of a process begins it anew.
    for text in ("1", "3"):
        await model(record(path, ScriptedModel("New."), mode="refresh")).chat(text).run()
    assert first_messages(path) == ["1", "3"]
    assert (await model(record(path)).chat("1").run()).text == "New."


async def test_the_environment_says_the_mode(path, monkeypatch) -> None:
    monkeypatch.setenv("FERRULE_RECORD", "replay")
    with pytest.raises(ModelError, match=r"holds no answers of echo"):
        record(path, "echo")
    monkeypatch.setenv("FERRULE_RECORD", "always")
    with pytest.raises(SettingsError, match="FERRULE_RECORD must be one of once, replay, refresh, not 'always'"):
        record(path, "echo")
    with pytest.raises(SettingsError, match="needs the model to ask"):
        record(path, mode="refresh")


async def test_the_same_request_asked_often_is_answered_in_turn(path) -> None:
    asked = model(record(path, ScriptedModel("heads", "tails", "heads"))).chat("Toss a coin.")
    recorded = [run.text for run in [await asked.run() for _ in range(3)]]
    replayed = model(record(path)).chat("Toss a coin.")
    assert [run.text for run in [await replayed.run() for _ in range(4)]] == [*recorded, "heads"]


class _Slow(EchoModel):
    """Answers later what was asked first."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Event] = []

    async def stream(self, conversation, tools, settings):
        mine = asyncio.Event()
        self.waiting.append(mine)
        if len(self.waiting) == 3:
            for one in reversed(self.waiting):
                one.set()
                await asyncio.sleep(0.01)
        await mine.wait()
        async for event in super().stream(conversation, tools, settings):
            yield event


async def test_concurrent_requests_are_written_in_the_order_in_which_they_began(path) -> None:
    await model(record(path, _Slow())).run_batch(["a", "b", "c"])
    assert first_messages(path) == ["a", "b", "c"]


def test_processes_append_to_one_file_without_losing_rows(path) -> None:
    code = (
        "import sys\nfrom ferrule import model, record\n"
        "asked = model(record(sys.argv[1], 'echo'))\n"
        "for at in range(20): asked.chat(f'{sys.argv[2]} {at} ' + 'x' * 20_000).run_sync()\n"
    )
    begun = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("a", "b")]
    assert [one.wait() for one in begun] == [0, 0]
    kept = [text[:4].split() for text in first_messages(path)]
    assert sorted(kept) == sorted([name, str(at)] for name in ("a", "b") for at in range(20))


async def test_what_has_the_form_of_a_key_is_left_out_of_a_request_and_recognised_anywhere(path) -> None:
    told = "use Authorization: Bearer abcdefghijklmnop1 or sk-proj-0123456789abcdefXYZ"
    assert (await model(record(path, ScriptedModel("Done."))).chat(told).run()).text == "Done."
    text = path.read_text()
    assert "abcdefghijklmnop" not in text
    assert "0123456789abcdefXYZ" not in text
    assert text.count("[scrubbed]") == 2
    assert (await model(record(path)).chat(told).run()).text == "Done."


@pytest.mark.parametrize("secret", ["production", "acme-0123456789", 'p"ss wörd 1'])
async def test_a_request_with_the_value_of_a_variable_is_refused_before_the_model_is_asked(
    path, monkeypatch, secret
) -> None:
    asked = ScriptedModel("Yes.", "Yes.")
    await model(record(path, asked)).chat(f"Is {secret} up?").run()
    recorded = path.read_text()
    monkeypatch.setenv("DB_PASSWORD", secret)
    assert (await model(record(path)).chat(f"Is {secret} up?").run()).text == "Yes."
    with pytest.raises(SettingsError, match=r"message 0 \(user\) contains the value of .* DB_PASSWORD") as raised:
        await model(record(path, asked)).chat(f"Is {secret} down?").run()
    assert secret not in str(raised.value)
    assert (path.read_text(), len(asked.seen)) == (recorded, 1)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ToolCall("a", "connect", '{"env": "production"}'), "the value of the environment variable DB_PASSWORD"),
        ("It is production.", "the value of the environment variable DB_PASSWORD"),
        ("It is sk-proj-0123456789abcdefXYZ.", "the form of a provider's key"),
        ("Authorization: Basic dXNlcjpwYXNz", "the form of a header with a key"),
    ],
)
async def test_an_answer_with_a_secret_is_not_recorded_as_another_one(path, monkeypatch, answer, words) -> None:
    monkeypatch.setenv("DB_PASSWORD", "production")
    connected = []

    @tool
    def connect(env: str) -> str:
        """Connect."""
        connected.append(env)
        return "connected"

    with pytest.raises(SettingsError, match=f"can't be recorded in .*{words}") as raised:
        await model(record(path, ScriptedModel(answer, "Done."))).using(connect).chat("Connect").run()
    assert "production" not in str(raised.value)
    assert not path.exists()
    assert not connected


async def test_examples_of_headers_and_sentences_are_recorded_as_they_are(path) -> None:
    told = 'Send "Authorization: Bearer $TOKEN", or api-key: YOUR_API_KEY, or authorization=<your-token>'
    await model(record(path, ScriptedModel(told))).chat("How?").run()
    assert (await model(record(path)).chat("How?").run()).text == told
    sentence = "the password is long, and the token count 5"
    await model(record(path, EchoModel())).chat(sentence).run()
    assert "the token count 5" in path.read_text()


async def test_a_key_given_as_an_option_is_refused(path) -> None:
    key = "option-key-of-a-server"
    async with openai_server.server(openai_server.says(f"Your key is {key}."), judge=openai_server.lenient) as server:
        asked = model("openai:m", record=path, api_key=key, base_url=f"{server.url}/v1")
        for question in (f"My key is {key}.", "What is my key?"):
            with pytest.raises(SettingsError, match=r"can't be recorded in .*the value of the option api_key"):
                await asked.chat(question).run()
        await asked.model.aclose()
    assert not path.exists()


async def test_an_image_is_written_as_its_hash(path) -> None:
    picture = Image(b"\x89PNG" + b"0" * 10_000)
    await model(record(path, EchoModel())).chat(user("What is this?", picture)).run()
    assert path.stat().st_size < 2_000
    assert picture.hash in path.read_text()
    assert (await model(record(path)).chat(user("What is this?", picture)).run()).text == "What is this?"
    with pytest.raises(RequestNotRecorded, match=f"recorded 'What is this. .image {picture.hash}"):
        await model(record(path)).chat(user("What is this?", Image(b"other"))).run()


async def test_a_local_models_ids_and_spans_are_replayed(path) -> None:
    asked = model("embedded", record=path).chat("What is 12 * 34?").using(calculator)
    async with asked.stream() as first:
        events = [event async for event in first]
    again = model("embedded", record=path).chat("What is 12 * 34?").using(calculator)
    async with again.stream() as second:
        assert [event async for event in second] == events
    assert second.traces() == first.traces()
    assert second.traces()


async def test_an_abandoned_answer_is_not_recorded(path) -> None:
    asked = record(path, EchoModel())
    answer = asked.stream(Conversation((user("one two three"),)), (), ModelSettings())
    assert await anext(answer) == TextDelta("one ")
    await answer.aclose()
    assert not path.exists()


async def test_what_supports_what_is_that_of_the_recorded_model(path) -> None:
    from dataclasses import replace

    plain = ScriptedModel("Hello.")
    plain.capabilities = replace(plain.capabilities, native_tools=False, settings=frozenset({"seed"}), tools=("a",))
    await model(record(path, plain)).chat("Hi").run()
    assert record(path).capabilities == plain.capabilities


def test_a_file_that_is_not_there_or_holds_others_is_named(path) -> None:
    with pytest.raises(ModelError, match=r"doesn't exist; record it first: record\("):
        record(path)
    model(record(path, "echo")).chat("Hi").run_sync()
    model(record(path, ScriptedModel("Hi"))).chat("Hi").run_sync()
    with pytest.raises(ModelError, match="holds several models; name one"):
        record(path)
    with pytest.raises(ModelError, match="holds no answers of openai:m, only of echo, scripted"):
        record(path, "openai:m", mode="replay")


async def test_a_recorded_pipeline_can_be_pickled(path) -> None:
    import pickle

    asked = model("echo", record=path).chat("Hi")
    await asked.run()
    assert (await pickle.loads(pickle.dumps(asked)).run()).text == "Hi"
    assert list(path.parent.iterdir()) == [path]
    assert isinstance((await events_of(record(path), "Hi"))[-1], MessageFinished)
