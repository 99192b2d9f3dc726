"""What keeping a local model's calls to their grammar costs, against the same steps without.

    python benchmarks/constraints.py
    python benchmarks/constraints.py --tekken tekken.json    # a larger vocabulary: the wheel of mistral-common has one

Whole calls are written by logits that prefer the ids of given ones, so that each is as long as a real one. A step is
all that the numpy engine does after its model: the mask, the choice, and going on. Compared are the means of the same
call's steps with and without a constraint, in CPU time, the median of some rounds.
"""

from __future__ import annotations

# ruff: noqa: E402 - numpy reads its thread count when it is imported
import argparse
import base64
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import mean, median

for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import numpy as np

from ferrule.conversation import ToolCall
from ferrule.dialects import get_dialect
from ferrule.dialects.grammar import Grammar, LiteralText
from ferrule.dialects.value_grammar.schema_values import lower_values
from ferrule.engines.constraint_compiler import ConstraintCompiler
from ferrule.engines.protocol import Sampling
from ferrule.engines.sampling import TokenSampler, sample_ids
from ferrule.engines.weights import Array
from ferrule.toolspec import ToolSpec

TEXT = {"type": "string"}
CALLS: tuple[tuple[ToolSpec, dict[str, object]], ...] = (
    (
        ToolSpec("get_weather", "", {"type": "object", "properties": {"city": TEXT, "days": {"type": "integer"}},
                                     "required": ["city"]}),
        {"city": "Newcastle upon Tyne", "days": 3},
    ),
    (
        ToolSpec("send_message", "", {"type": "object", "properties": {"to": {"type": "array", "items": TEXT},
                                      "text": TEXT, "urgent": {"type": "boolean"}}, "required": ["to", "text"]}),
        {"to": ["ann@example.org", "bo@example.org"], "text": "The meeting is moved to Thursday, half past ten, in the "
         "small room next to the library. Please bring the figures for the last quarter.", "urgent": False},
    ),
    (
        ToolSpec("convert", "", {"type": "object", "properties": {"amount": {"type": "number"}, "unit": {"enum":
                                 ["metres", "miles", "feet"]}}, "required": ["amount", "unit"]}),
        {"amount": 12.75, "unit": "miles"},
    ),
)  # fmt: skip
CONTROL = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>", "<tool_response>")


class Vocabulary:
    """Control tokens behind the others, which may be tokens of several bytes."""

    def __init__(self, texts: list[bytes], control: Iterable[str]) -> None:
        self.texts = texts
        self.control: Mapping[str, int] = {name: len(texts) + at for at, name in enumerate(control)}
        self.names = list(self.control)
        self.vocabulary_size = len(texts) + len(self.names)
        self.ids = {text: token for token, text in reversed(list(enumerate(texts)))}

    def decode_token(self, token: int) -> bytes:
        """The bytes of a token."""
        return self.texts[token] if token < len(self.texts) else self.names[token - len(self.texts)].encode()

    def encode(self, text: str) -> Iterator[int]:
        """The ids of a call: control tokens by their names, the others the longest that fit."""
        rest = text.encode()
        while rest:
            name = next((name for name in self.names if rest.startswith(name.encode())), None)
            if name is not None:
                yield self.control[name]
                rest = rest[len(name) :]
                continue
            size = next(size for size in range(min(32, len(rest)), 0, -1) if rest[:size] in self.ids)
            yield self.ids[rest[:size]]
            rest = rest[size:]


def read_tekken(path: Path, size: int) -> Vocabulary:
    """A vocabulary of `size` ids."""
    entries = json.loads(path.read_text(encoding="utf-8"))["vocab"][: size - len(CONTROL)]
    return Vocabulary([base64.b64decode(entry["token_bytes"]) for entry in entries], CONTROL)


def measure(vocabulary: Vocabulary, dialect: str, rounds: int) -> dict[str, float]:
    """Milliseconds: `index`, `compile` (of a grammar) with the first mask, `step` and `free` (without constraint)."""
    compiler = ConstraintCompiler(vocabulary)
    stop = vocabulary.control["<|im_end|>"]
    begun = time.thread_time()
    compiler.compile(LiteralText("a"), (stop,), 4096)
    index = time.thread_time() - begun
    firsts, steps, free = [], [], []
    noise = np.random.default_rng(0).normal(0, 1, (1, vocabulary.vocabulary_size)).astype(np.float32)
    for _ in range(rounds):
        for spec, arguments in CALLS:
            ids = [*vocabulary.encode(_write(dialect, spec, arguments)), stop]
            grammar = _make_grammar(dialect, spec)
            begun = time.thread_time()
            constraint = compiler.compile(grammar, (stop,), len(ids) + 256)
            constraint.mask()
            firsts.append(time.thread_time() - begun)
            steps.append(_write_call(noise, ids, TokenSampler(Sampling(), constraint)))
            free.append(_write_call(noise, ids, TokenSampler(Sampling())))
    figures = {"index": index, "compile": median(firsts), "step": median(steps), "free": median(free)}
    return {name: 1000 * value for name, value in figures.items()}


def _make_grammar(dialect: str, spec: ToolSpec) -> Grammar:
    grammar = get_dialect(dialect).grammar((spec,), spec.name, opens="<|im_start|>assistant\n")
    assert grammar is not None
    return lower_values(grammar)[0]


def _write(dialect: str, spec: ToolSpec, arguments: dict[str, object]) -> str:
    return get_dialect(dialect).call(ToolCall("call_1", spec.name, json.dumps(arguments)))


def _write_call(noise: Array, ids: list[int], sampler: TokenSampler) -> float:
    """Seconds a step."""
    taken = []
    for token in ids:
        logits = noise.copy()
        logits[0, token] = 50
        begun = time.thread_time()
        (chosen,), _ = sample_ids(logits, [sampler])
        taken.append(time.thread_time() - begun)
        if sampler.failure is not None or chosen != token:
            raise SystemExit(f"a step chose {chosen} and not {token}: {sampler.failure}")
    return mean(taken)


def main() -> None:
    """Measure, and print a line for each vocabulary and notation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tekken", type=Path, help="a vocabulary of 150,000 tokens, measured as well")
    parser.add_argument("--rounds", type=int, default=9, help="how often each call is written")
    options = parser.parse_args()
    extra = [f"<|extra_{number}|>" for number in range(272 - 256 - len(CONTROL))]
    vocabularies = [Vocabulary([bytes([byte]) for byte in range(256)], (*CONTROL, *extra))]
    if options.tekken is not None:
        vocabularies.append(read_tekken(options.tekken, 151_936))
    for vocabulary in vocabularies:
        for dialect in ("hermes", "qwen3_coder"):
            found = measure(vocabulary, dialect, options.rounds)
            print(
                f"{vocabulary.vocabulary_size:7,} ids, {dialect:12} index {found['index']:7.1f} ms, "
                f"grammar and first mask {found['compile']:5.2f} ms, step {found['step']:6.3f} ms, "
                f"without constraint {found['free']:6.3f} ms"
            )


if __name__ == "__main__":
    main()
