"""Local models whose template rewrites history, engines that a caller chooses, and the traces of runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from random_models import random_model
from reciting_engine import RecitingEngine

from ferrule.agent.pipeline import model
from ferrule.agent.run import Run
from ferrule.builtin_tools import calculator
from ferrule.conversation import Conversation, user
from ferrule.embedded import load_embedded_model
from ferrule.engines import NumpyEngine
from ferrule.errors import ModelError, SettingsError
from ferrule.models.checkpoints.loading import load_local_model
from ferrule.models.local import LocalModel
from ferrule.models.scripted import ScriptedModel
from ferrule.tokens.render import render

# Its template leaves the reasoning of earlier turns out, as that of Qwen 3 does.
QWEN = (Path(__file__).parents[1] / "dialects" / "templates" / "like_qwen3.jinja").read_text(encoding="utf-8")
THOUGHT = "<think>\nSure.\n</think>\n\n"
CALL = '<tool_call>\n{"name": "calculator", "arguments": {"expression": "2*3"}}\n</tool_call>'
ANSWERS = [f"{THOUGHT}{CALL}<|im_end|>", f"{THOUGHT}It is 6.<|im_end|>", f"{THOUGHT}You are welcome.<|im_end|>"]


def reciting_model(folder: Path, history: str, texts: list[str] = ANSWERS) -> tuple[LocalModel, RecitingEngine]:
    engines: list[RecitingEngine] = []

    def open_engine(checkpoint: Path) -> RecitingEngine:
        engines.append(RecitingEngine(checkpoint, texts))
        return engines[-1]

    local = random_model(folder, "template", template=QWEN, engine=open_engine, history=history)
    return local, engines[0]


async def two_turns(local: LocalModel) -> Run:
    """A question that is answered with a call, and another one."""
    asked = model(local).chat("What is 2 times 3?").using(calculator)
    return await asked.then(lambda run: run.conversation.add(user("Thanks."))).run()


@pytest.mark.parametrize("history", ["as_sampled", "as_template"])
def test_a_run_gives_the_ids_that_its_engine_had(tmp_path: Path, history: str) -> None:
    # I1 and I2, whatever the template rewrites: every prompt with what was sampled after it begins one of the traces.
    local, engine = reciting_model(tmp_path, history)
    assert local.dialect.rewrites_history
    run = asyncio.run(two_turns(local))
    run.conversation.check()
    traces = run.traces()
    sampled = [message.sampled for message in run.conversation.messages if message.sampled]
    assert len(engine.prompts) == len(sampled) == 3
    generated = [prompt + one.ids for prompt, one in zip(engine.prompts, sampled, strict=True)]
    for ids, one in zip(generated, sampled, strict=True):
        found = [trace for trace in traces if trace.ids[: len(ids)] == ids]
        trained = [trace for trace in found if trace.mask[len(ids) - len(one.ids) : len(ids)] == (1,) * len(one.ids)]
        assert len(trained) == 1
    assert sum(sum(trace.mask) for trace in traces) == sum(len(one.ids) for one in sampled)


@pytest.mark.parametrize("history", ["as_sampled", "as_template"])
def test_of_whatever_is_sampled_each_id_is_trained_once(tmp_path: Path, history: str) -> None:
    async def sample(local: LocalModel, seed: int) -> Run:
        asked = model(local).chat(f"Question {seed}").using(calculator).within(rounds=3)
        warm = asked.with_(temperature=1.0, seed=seed, max_tokens=30)
        return await warm.then(lambda run: run.conversation.add(user("And then?"))).run()

    async def sample_all() -> list[Run]:
        async with random_model(tmp_path, "template", template=QWEN, history=history) as local:
            return list(await asyncio.gather(*(sample(local, seed) for seed in range(25))))

    for run in asyncio.run(sample_all()):
        sampled = [one for m in run.conversation.messages if m.sampled for one in m.sampled.ids]
        traces = run.traces()
        trained = [token for one in traces for token, on in zip(one.ids, one.mask, strict=True) if on]
        assert trained == sampled
        assert all(len(one.ids) == len(one.mask) == len(one.logprobs) for one in traces)


def test_history_as_sampled_is_one_trace_which_is_what_the_conversation_renders_to(tmp_path: Path) -> None:
    local, engine = reciting_model(tmp_path, "as_sampled")
    run = asyncio.run(two_turns(local))
    [trace] = run.traces()
    whole = local.trace(run.conversation, [calculator.spec])
    assert whole.ids[: len(trace)] == trace.ids
    assert whole.mask[: len(trace)] == trace.mask
    assert whole.logprobs[: len(trace)] == trace.logprobs
    assert engine.prompts[2][: len(engine.prompts[1])] == engine.prompts[1]


def test_history_as_template_is_cut_where_the_template_drops_what_was_thought(tmp_path: Path) -> None:
    local, engine = reciting_model(tmp_path, "as_template")
    run = asyncio.run(two_turns(local))
    first, second = run.traces()
    # The call and the answer to its result are one trace; the next question begins another, without their reasoning.
    assert first.ids[: len(engine.prompts[1])] == engine.prompts[1]
    assert second.ids[: len(engine.prompts[2])] == engine.prompts[2]
    thinks = local.tokenizer.control["<think>"]
    assert engine.prompts[1].count(thinks) == 1
    assert engine.prompts[2].count(thinks) == 0
    plain = Conversation(
        tuple(message.with_parts(message.parts) for message in run.conversation.messages[:-1]), run.conversation.now
    )
    prompt = render(plain, local.dialect, local.tokenizer, [calculator.spec], with_prompt=True)
    assert prompt.ids == engine.prompts[2]
    assert local.count_tokens(Conversation(run.conversation.messages[:-1]), [calculator.spec]) == len(prompt)


def test_each_run_traces_what_it_sampled_itself(tmp_path: Path) -> None:
    local, engine = reciting_model(tmp_path, "as_sampled", [ANSWERS[1], ANSWERS[2]])

    async def offered_later() -> tuple[Run, Run]:
        first = await model(local).chat("Hello").run()
        return first, await model(local).chat(first.conversation).chat("And now?").using(calculator).run()

    first, second = asyncio.run(offered_later())
    [one], [other] = first.traces(), second.traces()
    # Each run trains what it sampled itself, after the whole prompt that it had.
    assert one.ids[: len(engine.prompts[0])] == engine.prompts[0]
    assert other.ids[: len(engine.prompts[1])] == engine.prompts[1]
    sampled = second.conversation.messages[-1].sampled
    assert sampled is not None
    assert sum(other.mask) == len(sampled.ids)


def test_a_dialect_that_keeps_history_gives_the_same_under_both(tmp_path: Path) -> None:
    prompts = []
    for history in ("as_sampled", "as_template"):
        local = random_model(tmp_path, "template", history=history)
        assert not local.dialect.rewrites_history
        run = asyncio.run(two_turns_of_noise(local))
        assert len(run.traces()) == 1
        prompts.append(run.traces())
    assert prompts[0] == prompts[1]


async def two_turns_of_noise(local: LocalModel) -> Run:
    async with local:
        asked = model(local).chat("Hello").with_(temperature=1.0, seed=4, max_tokens=20)
        return await asked.then(lambda run: run.conversation.add(user("More."))).run()


def test_a_history_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="history must be as_sampled or as_template, not 'as_written'"):
        random_model(tmp_path, history="as_written")


def test_an_engine_of_the_callers_choice_opens_the_folder(tmp_path: Path) -> None:
    def open_engine(folder: Path) -> NumpyEngine:
        return NumpyEngine.load(folder, context_length=64)

    assert random_model(tmp_path, engine=open_engine).context_length == 64
    assert load_embedded_model(engine=open_engine).context_length == 64
    # What another engine needs of the folder is its own affair; the ids are the tokenizer's.
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model\.safetensors is missing"):
        load_local_model(tmp_path)
    local = load_local_model(tmp_path, dialect="nanochat", engine=lambda folder: RecitingEngine(folder, []))
    assert isinstance(local.engine, RecitingEngine)


def test_a_model_that_samples_no_ids_here_has_no_traces() -> None:
    assert asyncio.run(model(ScriptedModel("Hello")).chat("Hi").run()).traces() == ()
