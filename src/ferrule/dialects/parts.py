"""What a reader's events make of one assistant message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ferrule.conversation import MalformedCall, Part, Reasoning, Text
from ferrule.events import CallFinished, CallMalformed, ReaderEvent, ReasoningDelta, TextDelta


@dataclass(slots=True)
class MessageParts:
    """The parts so far. Malformed calls get their ids from `first_call` on, as a reader numbers the others."""

    first_call: int
    parts: list[Part] = field(default_factory=list)
    calls: int = 0

    def add(self, events: Iterable[ReaderEvent]) -> None:
        """Take events, in their order."""
        for event in events:
            if isinstance(event, TextDelta | ReasoningDelta):
                kind = Text if isinstance(event, TextDelta) else Reasoning
                last = self.parts[-1] if self.parts else None
                if isinstance(last, kind):
                    self.parts[-1] = kind(last.text + event.text)
                else:
                    self.parts.append(kind(event.text))
            elif isinstance(event, CallFinished):
                self.parts.append(event.call)
                self.calls += 1
            elif isinstance(event, CallMalformed):
                self.parts.append(MalformedCall(f"call_{self.first_call + self.calls}", event.raw, event.kind))
                self.calls += 1
