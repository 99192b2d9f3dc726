"""Training conversations as batches of ids and targets, the same for the same seed, worker and chunk."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from ferrule.dialects.families.nanochat import ASSISTANT_START, PYTHON_END, PYTHON_START
from ferrule.errors import SettingsError
from ferrule.formats.nanochat import load, read_jsonl
from ferrule.tokens.render import Trace
from ferrule.tokens.tokenizer import Tokenizer
from ferrule.training.embedded.checkpoint import get_control_id
from ferrule.training.embedded.recipe import Recipe
from ferrule.training.embedded.rendering import render_conversation
from ferrule.training.synth import EARLY, FULL, draw_examples, to_json

IGNORED = -100
_CALL_START, _CALL_END, _ANSWER_START = map(get_control_id, (PYTHON_START, PYTHON_END, ASSISTANT_START))
_TOKEN_CHARACTERS = 2
"""The fewest characters that a token of a long text has on average, about."""
_STRIDE = 16
_PADDING = 0
"""What fills a row; as a byte it is in no text."""
_CHUNK_BATCHES = 32
_PART_TOKENS = 2_048
"""Tokens whose gradients are computed at once: what a layer of them takes stays in the cache of a core."""


class Batches:
    """The batches of one worker. A chunk of them is drawn, sorted by length for little padding, and shuffled."""

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer, worker: int) -> None:
        self._recipe, self._tokenizer, self._worker = recipe, tokenizer, worker
        self._tokens = recipe.batch_tokens // recipe.workers
        self._file = load_file(recipe.data, tokenizer, recipe.longest) if recipe.data else None

    def iterate_from(self, step: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches (ids, targets), both (rows, length) int64, from a step on, as in an uninterrupted run."""
        chunk, done = divmod(step, _CHUNK_BATCHES)
        while True:
            single_turn = chunk * _CHUNK_BATCHES < self._recipe.short * self._recipe.steps
            yield from islice(self._draw_chunk(chunk, single_turn), done, None)
            chunk, done = chunk + 1, 0

    def _draw_chunk(self, chunk: int, single_turn: bool) -> Iterator[tuple[Tensor, Tensor]]:
        rng = random.Random(f"{self._recipe.seed}/{self._worker}/{chunk}")
        traces: list[Trace] = []
        room = self._tokens * _CHUNK_BATCHES
        for trace in self._draw(rng, single_turn):
            traces.append(trace)
            # One that is longer than a batch still fills only one: a chunk has no fewer batches than steps.
            room -= min(_pad(len(trace)), self._tokens)
            if room <= 0:
                break
        traces.sort(key=len)
        batches = list(_group(traces, self._tokens))
        rng.shuffle(batches)
        for batch in batches[:_CHUNK_BATCHES]:
            yield _stack(batch)

    def _draw(self, rng: random.Random, single_turn: bool) -> Iterator[Trace]:
        if self._file is not None:
            while True:
                yield rng.choice(self._file)
        mix = EARLY if single_turn else replace(FULL, tools=self._recipe.tools)
        # Drawn short, not drawn and left out: what is left out are the conversations with many tools and turns. Below
        # what EARLY has, some tools have no conversation that is short enough.
        most = max(self._recipe.longest * _TOKEN_CHARACTERS, EARLY.most_tool_characters)
        mix = replace(mix, most_tool_characters=min(mix.most_tool_characters, most))
        for example in draw_examples(rng.getrandbits(62), sys.maxsize, mix=mix):
            trace = render_conversation(load(to_json(example)), self._tokenizer)
            if len(trace) <= self._recipe.longest:
                yield trace


def load_file(path: Path, tokenizer: Tokenizer, longest: int) -> list[Trace]:
    """The conversations of a file of at most `longest` tokens that train something.

    Raises `SettingsError` if there are none, and what `read_jsonl` raises.
    """
    traces = (render_conversation(conversation, tokenizer) for conversation in read_jsonl(path))
    usable = [trace for trace in traces if len(trace) <= longest and any(trace.mask)]
    if not usable:
        raise SettingsError(
            f"data: {path} has nothing to train: no conversation of at most {longest} tokens (`longest`) with a "
            "message of the assistant"
        )
    return usable


def _pad(length: int) -> int:
    return -(-length // _STRIDE) * _STRIDE


def _group(traces: Sequence[Trace], tokens: int) -> Iterator[list[Trace]]:
    """Runs of traces whose padded area is at most `tokens`; the longest of a run determines its width."""
    group: list[Trace] = []
    for trace in traces:
        if group and _pad(len(trace)) * (len(group) + 1) > tokens:
            yield group
            group = []
        group.append(trace)
    if group:
        yield group


def _stack(traces: Iterable[Trace]) -> tuple[Tensor, Tensor]:
    rows = list(traces)
    width = _pad(max(map(len, rows)))
    ids = torch.full((len(rows), width), _PADDING, dtype=torch.long)
    targets = torch.full((len(rows), width), IGNORED, dtype=torch.long)
    for row, trace in enumerate(rows):
        line = torch.tensor(trace.ids)
        ids[row, : len(line)] = line
        # The target at a position is the next token, if that is trained.
        trained = torch.tensor(trace.mask[1:], dtype=torch.bool)
        targets[row, : len(line) - 1][trained] = line[1:][trained]
    return ids, targets


def weigh_choices(ids: Tensor, weight: float) -> Tensor:
    """How much the target at each position (rows, length) counts: `weight` where the target is the first token of an
    answer or belongs to a call, otherwise 1."""
    places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    never = torch.full_like(ids, -1)
    begun = torch.where(ids == _CALL_START, places, never).cummax(1).values
    ended = torch.where(ids == _CALL_END, places, never).cummax(1).values
    return torch.where((begun > ended) | (ids == _ANSWER_START), weight, 1.0)


@dataclass(frozen=True, slots=True)
class BatchPart:
    """Some rows of a batch: ids, targets, what each target counts, and whether it is trained or context, all (rows,
    length). Over all parts of a batch the trained targets count 1 together."""

    ids: Tensor
    targets: Tensor
    weights: Tensor
    is_trained: Tensor


def split_batch(
    ids: Tensor,
    targets: Tensor,
    choice_weight: float = 1.0,
    context_weight: float = 0.0,
    tokens: int = _PART_TOKENS,
) -> Iterator[BatchPart]:
    """The rows (rows, length) of a batch in parts of about so many tokens.

    `context_weight` is what a token that isn't trained counts of one that is.
    """
    # Never one row alone where there are several: for that the network would be compiled again.
    parts = max(1, min(round(ids.numel() / tokens), len(ids) // 2))
    is_trained = targets != IGNORED
    weights = weigh_choices(ids, choice_weight) * is_trained
    wanted = weights.sum()
    if context_weight:
        following = functional.pad(ids[:, 1:], (0, 1), value=_PADDING)
        is_context = ~is_trained & (following != _PADDING)
        weights = weights + context_weight * is_context
        targets = torch.where(is_context, following, targets)
    for rows in torch.arange(len(ids)).tensor_split(parts):
        if weights[rows].any():
            yield BatchPart(ids[rows], targets[rows], weights[rows] / wanted, is_trained[rows])
