"""Conversations of ids on an engine, with pauses for results, and one forward pass over what became of each.

A random model's "call" ends at any of several stop ids; its "result" is a few random ids, which the next prompt adds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ferrule.engines import Engine, Finished, Sampled, Sampling

TOKENS = 290
"""Ids from here on are those that stand for images and the like: none is given as text."""
TOLERANCE = 1e-4
"""The largest difference of a logit, or of a log-probability, from that of one forward pass in float32."""


@dataclass
class TokenConversation:
    """The ids of a conversation, those that were sampled with their place, and how each generation ended."""

    ids: list[int]
    sampled: list[tuple[int, Sampled]] = field(default_factory=list)
    ends: list[Finished] = field(default_factory=list)

    def add(self, tokens: Sequence[Sampled]) -> None:
        for token in tokens:
            self.sampled.append((len(self.ids), token))
            self.ids.append(token.id)


@dataclass(frozen=True)
class Script:
    """What happens in a conversation: its prompt, the results that follow its calls, and how it is sampled."""

    prompt: tuple[int, ...]
    results: tuple[tuple[int, ...], ...]
    sampling: Sampling
    stop_ids: frozenset[int]
    pauses: int = 0
    """How often the event loop goes round before a result is there."""


def draw_ids(generator: np.random.Generator, length: int) -> tuple[int, ...]:
    return tuple(generator.integers(0, TOKENS, length).tolist())


def make_scripts(seed: int, count: int, calls: int = 3, longest: int = 60, turn: int = 24) -> list[Script]:
    """Ragged conversations; every second begins with a prompt that all of these share, every third is greedy."""
    generator = np.random.default_rng(seed)
    shared = draw_ids(generator, longest)
    scripts = []
    for number in range(count):
        own = draw_ids(generator, int(generator.integers(1, longest)))
        results = [draw_ids(generator, int(generator.integers(1, 40))) for _ in range(calls)]
        scripts.append(
            Script(
                shared + own[: len(own) // 2] if number % 2 else own,
                tuple(results),
                Sampling(temperature=0 if number % 3 == 0 else 1.0, seed=number, max_tokens=turn),
                frozenset(generator.integers(0, TOKENS, 24).tolist()),
                number % 4,
            )
        )
    return scripts


async def hold(engine: Engine, script: Script) -> TokenConversation:
    """Generate, add a result, go on, until there are no more results."""
    conversation = TokenConversation(list(script.prompt))
    for result in ((), *script.results):
        conversation.ids += result
        for _ in range(script.pauses):
            await asyncio.sleep(0)
        async for item in engine.generate(conversation.ids, sampling=script.sampling, stop_ids=script.stop_ids):
            if isinstance(item, Finished):
                conversation.ends.append(item)
            else:
                conversation.add(item)
    return conversation


async def leave(engine: Engine, ids: Sequence[int], after: int) -> None:
    """Begin a generation and close it once `after` tokens are there."""
    generation = engine.generate(ids, sampling=Sampling(temperature=1.0, seed=after), stop_ids=())
    seen = 0
    while seen < after:
        item = await anext(generation)
        assert not isinstance(item, Finished)
        seen += len(item)
    await generation.aclose()


@contextmanager
def captured_logits(model: Any) -> Iterator[Callable[[], Any]]:
    """What the model's output layer computes meanwhile: a call gives all rows (rows, vocabulary) so far."""
    import torch

    rows: list[Any] = []

    def keep(_module: Any, _inputs: Any, output: Any) -> None:
        rows.append(output.detach().reshape(-1, output.shape[-1]).clone())

    handle = model.get_output_embeddings().register_forward_hook(keep)
    try:
        yield lambda: torch.cat(rows)
    finally:
        handle.remove()


def compute_reference(model: Any, ids: Sequence[int]) -> tuple[Any, Any]:
    """One forward pass over all ids: the output layer's rows, and the log-softmax of the model's logits."""
    import torch

    with torch.inference_mode(), captured_logits(model) as get_rows:
        logits = model(input_ids=torch.tensor([list(ids)]), use_cache=False).logits[0]
    return get_rows(), logits.log_softmax(-1)


def check_against_forward(model: Any, conversations: Sequence[TokenConversation], rows: Any) -> None:
    """Compare each sampled id's log-probability, and the whole row of logits that it was drawn from.

    `rows` are those that the output layer computed for the engine, in any order: the right one has to be among them.
    """
    import torch

    for number, conversation in enumerate(conversations):
        expected_rows, logprobs = compute_reference(model, conversation.ids)
        places = torch.tensor([place - 1 for place, _ in conversation.sampled])
        expected = logprobs[places, torch.tensor([token.id for _, token in conversation.sampled])]
        actual = torch.tensor([token.logprob for _, token in conversation.sampled])
        differences = (expected - actual).abs()
        worst = int(differences.argmax())
        where = f"conversation {number}, position {conversation.sampled[worst][0]} of {len(conversation.ids)}"
        assert differences[worst] <= TOLERANCE, f"{where}: a log-probability is off by {differences[worst]:.2g}"
        nearest = torch.cdist(expected_rows[places], rows, p=float("inf")).min(dim=1).values
        worst = int(nearest.argmax())
        where = f"conversation {number}, position {conversation.sampled[worst][0]} of {len(conversation.ids)}"
        assert nearest[worst] <= TOLERANCE, f"{where}: a logit is off by {nearest[worst]:.2g}"


def check_resumed(conversation: TokenConversation, script: Script) -> None:
    """Each generation but the first computes the result and the last sampled id only."""
    for before, after, result in zip(conversation.ends[:-1], conversation.ends[1:], script.results, strict=True):
        kept = before.prompt_tokens + before.sampled_tokens - 1
        assert after.prompt_tokens == kept + 1 + len(result)
        assert after.cached_tokens >= kept, f"{after.cached_tokens} of {kept} ids were kept over a pause"


def check_greedy(model: Any, prompt: Sequence[int], sampled: Sequence[int]) -> None:
    """The ids of transformers' `generate`; after a place where two logits are nearly equal anything may follow."""
    import torch

    tensor = torch.tensor([list(prompt)])
    with torch.inference_mode():
        output = model.generate(
            tensor,
            attention_mask=torch.ones_like(tensor),
            max_new_tokens=len(sampled),
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
        )
    expected = output.sequences[0, len(prompt) :].tolist()
    assert len(expected) == len(sampled)
    for at, (one, other) in enumerate(zip(expected, sampled, strict=True)):
        if one != other:
            best, second = output.logits[at][0].topk(2).values.tolist()
            assert best - second <= TOLERANCE, f"id {at} is {other}, not {one}"
            return
