"""A command line as data: its parts, and the effects that a policy judges."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.tools.intent import Effect

__all__ = ["CommandLine", "Part"]


@dataclass(frozen=True, slots=True)
class Part:
    """One program, assignment or redirection of a command line, as written from `start` to `end` (characters).

    `words` are those of the program without its wrappers (`timeout 5`), or empty if not all are known; `effects` is
    what it would do.
    """

    text: str
    start: int
    end: int
    words: tuple[str, ...]
    effects: tuple[Effect, ...]
    kind: str = "program"
    """`program`, `assignment` or `redirection`."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What a command line would do.

    With a `problem`, which says why it can't be judged, the only effect is to run the whole text, without words: no
    rule for commands covers it, and it should be asked about under every profile. `parts` then has what was found.
    """

    text: str
    parts: tuple[Part, ...]
    effects: tuple[Effect, ...]
    problem: str | None = None

    @property
    def only_reads(self) -> bool:
        """Whether all of it is known to only read, so that it can run where nothing can be written."""
        return all(effect.kind == "read" for effect in self.effects)
