"""A drawn conversation, and its JSON: the format of nanochat's training files."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ferrule._util.output_files import open_output

_PROGRESS_EVERY = 500


@dataclass(frozen=True, slots=True)
class Turn:
    """A request and its answer; without a call, `call` and `output` are None."""

    user: str
    call: str | None
    output: str | None
    reply: str


@dataclass(frozen=True, slots=True)
class Example:
    """A conversation. `kind` is its section's, or `turns` if it has several turns."""

    kind: str
    section: str
    turns: tuple[Turn, ...]

    @property
    def characters(self) -> int:
        """The length of its text, which limits the number of tokens."""
        return sum(
            len(turn.user) + len(turn.call or "") + len(turn.output or "") + len(turn.reply) for turn in self.turns
        )


def to_json(example: Example) -> dict[str, object]:
    """The conversation as nanochat writes it, with its `kind` next to the messages."""
    messages: list[dict[str, object]] = []
    for turn in example.turns:
        parts = [{"type": "text", "text": turn.reply}]
        if turn.call is not None and turn.output is not None:
            parts = [
                {"type": "python", "text": turn.call},
                {"type": "python_output", "text": turn.output},
                *parts,
            ]
        messages.append({"role": "user", "content": turn.user})
        messages.append({"role": "assistant", "content": parts})
    return {"messages": messages, "kind": example.kind}


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
