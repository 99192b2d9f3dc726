"""A drawn conversation, its JSON (the format of nanochat's training files), and two turns joined into one."""

import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferrule._util.output_files import open_output
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import split_words

_PROGRESS_EVERY = 500


@dataclass(frozen=True, slots=True)
class Step:
    """A call of a tool as the model writes it, and the text of its result."""

    call: str
    output: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A request and its answer: the calls with their outputs, in order, and the reply.

    `is_trained` is False for an answer that the framework writes in the model's place.
    """

    user: str
    steps: tuple[Step, ...]
    reply: str
    is_trained: bool = True

    @property
    def call(self) -> str | None:
        """The first call; None without one."""
        return self.steps[0].call if self.steps else None

    @property
    def output(self) -> str | None:
        """The output of the first call; None without one."""
        return self.steps[0].output if self.steps else None


@dataclass(frozen=True, slots=True)
class Example:
    """A conversation. `kind` is its section's, `turns` if it has several turns, `tools` if it has foreign tools.

    `tools` are those offered, as in JSON (name, description, parameters); None where nothing is offered, as for the
    calculator alone. `offer_characters` is about how long the offer is.
    """

    kind: str
    section: str
    turns: tuple[Turn, ...]
    tools: tuple[Mapping[str, Any], ...] | None = None
    offer_characters: int = 0

    @property
    def characters(self) -> int:
        """The length of its text, which limits the number of tokens."""
        said = sum(len(turn.user) + len(turn.reply) for turn in self.turns)
        called = sum(len(step.call) + len(step.output) for turn in self.turns for step in turn.steps)
        return self.offer_characters + said + called


def to_json(example: Example) -> dict[str, object]:
    """The conversation as nanochat writes it, with its `kind`, and its `tools` if it has any, next to the messages."""
    messages: list[dict[str, object]] = []
    for turn in example.turns:
        parts: list[dict[str, str]] = []
        for step in turn.steps:
            parts.append({"type": "python", "text": step.call})
            parts.append({"type": "python_output", "text": step.output})
        parts.append({"type": "text", "text": turn.reply})
        messages.append({"role": "user", "content": turn.user})
        answer: dict[str, object] = {"role": "assistant", "content": parts}
        messages.append(answer if turn.is_trained else {**answer, "trained": False})
    offer = {} if example.tools is None else {"tools": list(example.tools)}
    return {"messages": messages, **offer, "kind": example.kind}


def write_examples(path: Path, examples: Iterable[Example], progress: Callable[[int], None] | None) -> int:
    """Write conversations one per line and return how many; `progress` is called with the number written since.

    `-` is standard output, and a device or a pipe is written to. Any other file is replaced once all are written: an
    interruption leaves the previous one. Raises OSError.
    """
    written = 0
    with open_output(path) as file:
        for example in examples:
            file.write(json.dumps(to_json(example), ensure_ascii=False).encode() + b"\n")
            written += 1
            if progress and written % _PROGRESS_EVERY == 0:
                progress(_PROGRESS_EVERY)
    if progress and written % _PROGRESS_EVERY:
        progress(written % _PROGRESS_EVERY)
    return written


_LONGEST = 90
_JOINTS = (
    "? ", "? And ", "? and ", ". ", ". And ", ". Then ", "; ", "\n", ", and ", " and ", " and also ", ", also ",
    " and then ", "? Also, ", "! And ", ". Also ", ". Next: ",
)  # fmt: skip
# Between a text without quotes and what follows only a sentence's end shows where the text ends.
_CLEAR_JOINTS = ("? ", "? And ", "? Also, ", "\n")
_END = " .?!,;:"
_FRAME_WORDS = frozenset(
    split_words(
        "what what's whats how calculate compute count reverse add subtract multiply divide spell give tell find work"
        " which is do could can please so and"
    )
)


def join_turns(rng: random.Random, first: Turn, second: Turn) -> Turn | None:
    """One turn that asks for both and answers both in their order; None if they are too long, or don't end clearly."""
    if len(first.user) > _LONGEST or len(second.user) > _LONGEST or not first.steps or not second.steps:
        return None
    is_text = any('"' in step.call for turn in (first, second) for step in turn.steps)
    joints = _CLEAR_JOINTS if is_text else _JOINTS
    joint = pick(rng, joints)
    head = first.user.rstrip(_END)
    tail = second.user
    word = tail.split(" ", 1)[0]
    if joint[-1] == " " and joint[0] not in "?.!" and word.lower() in _FRAME_WORDS:
        tail = tail[:1].lower() + tail[1:]
    if not head or head[-1] in "=-+*/":
        return None
    return Turn(head + joint + tail, first.steps + second.steps, f"{first.reply} {second.reply}")
