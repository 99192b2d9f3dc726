"""Calls that a local model is unsure of: what is said instead, what a yes leads to, and that none of it is trained."""

import json
from itertools import pairwise
from math import exp

import pytest
from reciting_engine import RecitingEngine

from ferrule import record, tool
from ferrule.agent.pipeline import Pipeline
from ferrule.conversation import Conversation, ToolCall, assistant, user
from ferrule.dialects import get_dialect
from ferrule.dialects.families.nanochat import CONTROL_TOKENS
from ferrule.dialects.families.nanochat_tools import TOOLS_END, TOOLS_START
from ferrule.dialects.grammar import ControlToken, GrammarSequence, LiteralText
from ferrule.dialects.segments import SampledIds
from ferrule.embedded.guide import EmbeddedGuide
from ferrule.embedded.withholding import find_agreed_call, read_threshold
from ferrule.errors import ModelError, ToolFailed
from ferrule.events import CallStarted, MessageFinished, TextDelta
from ferrule.formats import nanochat
from ferrule.models.checkpoints.loading import read_tokenizer
from ferrule.models.local import LocalModel
from ferrule.models.protocol import ModelSettings
from ferrule.session.renderer import event_to_json
from ferrule.tokens.render import render
from ferrule.tokens.tokenizer import make_byte_tokenizer_json
from ferrule.training.embedded.rendering import render_conversation
from ferrule.training.synth.tool_use import exchanges

PARIS = '<|python_start|>get_weather(city="Paris")<|python_end|>'
OSLO = '<|python_start|>get_weather(city="Oslo")<|python_end|>'
SAID = "Sunny.<|assistant_end|>"
QUESTION = 'I\'m not sure. Should I call get_weather(city="Paris")?'

AGAIN = 'I have the result of get_weather(city="Paris") already. Should I call it again?'


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@pytest.fixture
def folder(tmp_path):
    tokens = [*CONTROL_TOKENS, TOOLS_START, TOOLS_END, *(f"<|reserved_{n}|>" for n in range(5))]
    (tmp_path / "tokenizer.json").write_text(json.dumps(make_byte_tokenizer_json(tokens)))
    return tmp_path


def load(folder, *texts: str, threshold: float | None = 0.5) -> LocalModel:
    """A model that recites these texts, each token with a log-probability of -0.5."""
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    dialect = get_dialect("nanochat-tools")
    return LocalModel(RecitingEngine(folder, texts), tokenizer, dialect, guide=EmbeddedGuide(threshold))


def ask(model: LocalModel, *prompts: str) -> Conversation:
    conversation = Conversation()
    for prompt in prompts:
        run = Pipeline(model).using(get_weather).chat(conversation).chat(prompt).run_sync()
        conversation = run.conversation
    return conversation


def list_roles(conversation: Conversation) -> list[str]:
    return [message.role for message in conversation.messages]


def test_a_yes_makes_the_call_that_was_withheld(folder) -> None:
    model = load(folder, PARIS, PARIS, SAID)
    asked = ask(model, "is it raining in Paris?")
    assert (list_roles(asked), asked.messages[-1].text) == (["user", "assistant"], QUESTION)
    done = ask(load(folder, PARIS, PARIS, SAID), "is it raining in Paris?", "yes")
    assert list_roles(done) == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    assert done.messages[4].result.text == "sunny in Paris"


def test_another_call_after_a_correction_is_withheld_too(folder) -> None:
    done = ask(load(folder, PARIS, OSLO, OSLO, SAID), "is it raining?", "no, Oslo", "yes")
    assert done.messages[3].text == 'I\'m not sure. Should I call get_weather(city="Oslo")?'
    assert done.messages[-2].result.text == "sunny in Oslo"


@pytest.mark.parametrize(
    "said",
    [
        "no",
        "NO! do not",
        "please don't",
        "that's wrong",
        "yesterday",
        "what?",
        "right, but not there",
        "stop",
        "please make it Oslo",
        "ok, 3",
    ],
)
def test_only_a_yes_is_a_yes(folder, said: str) -> None:
    done = ask(load(folder, PARIS, PARIS), "is it raining?", said)
    assert (list_roles(done), done.messages[-1].text) == (["user", "assistant"] * 2, QUESTION)


@pytest.mark.parametrize("said", ["yes", "Yes please!", "ok go", "sure, why not", "y", "that's it", "do it now"])
def test_a_yes_may_be_put_in_many_words(folder, said: str) -> None:
    assert list_roles(ask(load(folder, PARIS, PARIS, SAID), "is it raining?", said))[4] == "tool"


def test_every_yes_that_the_model_is_trained_on_is_one() -> None:
    def permits(said: str) -> bool:
        asked = Conversation((user("rain?"), assistant(QUESTION), user(said)))
        return find_agreed_call(asked) == 'get_weather(city="Paris")'

    assert [said for said in exchanges._YES if not permits(said)] == []
    assert [said for said in exchanges._NO if permits(said)] == []


@pytest.mark.parametrize("call", ['get_weather(city="Paris")', 'is_it("?")', "12 * 3"])
def test_after_a_yes_the_grammar_has_that_call_alone(call: str) -> None:
    guide = EmbeddedGuide(0.5)
    asked = Conversation((user("rain?"), assistant(f"Hm. I'm not sure. Should I call {call}?"), user("yes")))
    expected = GrammarSequence((ControlToken("<|python_start|>"), LiteralText(call), ControlToken("<|python_end|>")))
    assert guide.constrain(asked, [get_weather.spec], ModelSettings()) == expected
    assert EmbeddedGuide().constrain(asked, [get_weather.spec], ModelSettings()) != expected
    for said in ("no", "yes, in Oslo"):
        other = Conversation((*asked.messages[:2], user(said)))
        assert guide.constrain(other, [get_weather.spec], ModelSettings()) != expected


def test_a_yes_permits_one_call(folder) -> None:
    done = ask(load(folder, PARIS, PARIS, PARIS), "is it raining?", "yes")
    assert (list_roles(done)[3:], done.messages[-1].text) == (["assistant", "tool", "assistant"], AGAIN)


def test_a_call_whose_result_is_there_is_asked_about_as_one_to_repeat(folder) -> None:
    done = ask(load(folder, PARIS, PARIS, PARIS, PARIS, OSLO), "is it raining?", "yes", "yes")
    assert [message.text for message in done.messages if message.role == "assistant" and not message.calls] == [
        QUESTION,
        AGAIN,
        'I\'m not sure. Should I call get_weather(city="Oslo")?',
    ]
    assert sum(message.role == "tool" for message in done.messages) == 2


def test_a_failed_call_is_no_result_to_repeat(folder) -> None:
    @tool
    def get_weather(city: str) -> str:
        """The weather in a city."""
        raise ToolFailed(f"no {city}")

    run = Pipeline(load(folder, PARIS, PARIS, PARIS)).using(get_weather).chat("is it raining?").run_sync()
    again = Pipeline(load(folder, PARIS, PARIS)).using(get_weather).chat(run.conversation).chat("yes").run_sync()
    assert (list_roles(again.conversation)[-2:], again.text) == (["tool", "assistant"], QUESTION)


async def test_what_was_withheld_and_how_sure_the_model_was_is_told(folder, tmp_path) -> None:
    for _ in ("recorded", "replayed"):
        pipeline = Pipeline(record(tmp_path / "asked.jsonl", load(folder, PARIS))).using(get_weather)
        async with pipeline.chat("is it raining?").stream() as run:
            (finished,) = [event async for event in run if isinstance(event, MessageFinished)]
        (call,) = finished.withheld
        assert (call.name, call.decode()) == ("get_weather", {"city": "Paris"})
        *_, (shown, _) = pairwise(event_to_json(finished))
        assert shown == {
            "event": "withheld_call",
            "id": call.id,
            "name": "get_weather",
            "arguments": {"city": "Paris"},
            "confidence": float(f"{finished.confidences[0]:.4g}"),
        }


def test_a_message_that_was_withheld_is_not_sampled_and_not_trained(folder) -> None:
    model = load(folder, PARIS, PARIS, SAID)
    asked = ask(model, "is it raining in Paris?")
    message = asked.messages[-1]
    assert (message.sampled, message.is_trained) == (None, False)
    trace = model.trace(asked, [get_weather.spec])
    assert not any(trace.mask)
    assert bytes(one for one in trace.ids if one < 256).endswith(QUESTION.encode())
    done = ask(load(folder, PARIS, PARIS, SAID), "is it raining in Paris?", "yes")
    assert sum(model.trace(done, [get_weather.spec]).mask) == sum(
        len(one.sampled.ids) for one in done.messages if one.sampled is not None
    )


def test_its_mark_is_kept_in_training_files(folder) -> None:
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    asked = ask(load(folder, PARIS), "is it raining in Paris?")
    written = nanochat.dump(asked)
    assert written["messages"][-1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": QUESTION}],
        "trained": False,
    }
    read = nanochat.load(written)
    assert nanochat.dump(read) == written
    assert not read.messages[-1].is_trained
    assert not any(render_conversation(read, tokenizer).mask)


def test_a_turn_that_goes_on_after_a_call_is_two_entries(folder) -> None:
    model = load(folder, PARIS, SAID, threshold=None)
    done = ask(model, "is it raining in Paris?")
    last = assistant(QUESTION).mark_untrained()
    unsure = Conversation((*done.messages[:-1], last))
    offer = {"tools": [{"name": "get_weather", "description": "", "parameters": get_weather.parameters}]}
    loaded = nanochat.load({"messages": [{"role": "user", "content": "?"}], **offer})
    written = nanochat.dump(Conversation((loaded.messages[0], *unsure.messages[1:])))
    assert [entry.get("trained", True) for entry in written["messages"]] == [True, True, False]
    assert nanochat.dump(nanochat.load(written)) == written


@pytest.mark.parametrize("name", ["hermes", "nanochat"])
def test_no_dialect_trains_a_message_so_marked(name) -> None:
    conversation = Conversation((user("Hi"), assistant("Hello!").mark_untrained(), user("?"), assistant("Yes.")))
    segments = get_dialect(name).layout(conversation).segments
    trained = "".join(one.text for one in segments if not isinstance(one, SampledIds) and one.trained)
    assert "Yes." in trained
    assert "Hello!" not in trained


async def stream(model: LocalModel, prompt: str = "?"):
    found = [event async for event in model.stream(Conversation((user(prompt),)), [get_weather.spec], ModelSettings())]
    finished = found[-1]
    assert isinstance(finished, MessageFinished)
    return found, finished


async def test_a_calls_confidence_is_that_of_its_tokens(folder) -> None:
    _, finished = await stream(load(folder, "Hm." + PARIS, threshold=None))
    assert finished.stop == "calls"
    tokens = 2 + len('get_weather(city="Paris")')
    assert finished.confidences == (pytest.approx(exp(-0.5 * tokens)),)
    _, finished = await stream(load(folder, SAID))
    assert finished.confidences == ()


async def test_where_a_grammar_chooses_the_tool_its_name_does_not_count(folder) -> None:
    local = load(folder, "Hm." + PARIS, threshold=None)
    local.engine.can_constrain = True
    _, finished = await stream(local)
    tokens = 2 + len('(city="Paris")')
    assert finished.confidences == (pytest.approx(exp(-0.5 * tokens)),)


async def test_nothing_of_a_withheld_call_is_streamed(folder) -> None:
    events, finished = await stream(load(folder, "Hm." + PARIS))
    assert not any(isinstance(event, CallStarted) for event in events)
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert said == finished.message.text == f"Hm. {QUESTION}"
    assert (finished.stop, [call.name for call in finished.withheld]) == ("turn", ["get_weather"])


async def test_a_call_that_is_sure_enough_is_made(folder) -> None:
    events, finished = await stream(load(folder, PARIS, threshold=0.0))
    assert [call.name for call in finished.message.calls if isinstance(call, ToolCall)] == ["get_weather"]
    assert any(isinstance(event, CallStarted) for event in events)


def test_the_threshold_of_a_folder(folder) -> None:
    assert read_threshold(folder) is None
    file = folder / "confidence.json"
    file.write_text('{"threshold": 0.75}')
    assert read_threshold(folder) == 0.75
    for wrong in ("{}", "[", '{"threshold": 2}', '{"threshold": true}', "[]"):
        file.write_text(wrong)
        with pytest.raises(ModelError, match=r"confidence\.json.*no call is withheld"):
            read_threshold(folder)


def test_render_masks_it_for_any_tokenizer(folder) -> None:
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    conversation = Conversation((user("Hi"), assistant("Hello!").mark_untrained()))
    assert not any(render(conversation, get_dialect("nanochat"), tokenizer).mask)
