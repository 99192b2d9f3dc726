"""The calls of a paused conversation that wait, and the decisions on them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ferrule.conversation import Conversation
from ferrule.errors import ConversationError

if TYPE_CHECKING:
    from ferrule.execution import Decision, Pending


@dataclass(frozen=True, slots=True)
class Waiting:
    """Calls that wait and the decisions on them, as JSON values by call id.

    `execution/` is imported only where there are any: most conversations wait for nothing.
    """

    held: Mapping[str, Any]
    decided: Mapping[str, Any]

    @classmethod
    def of(cls, text: str | None) -> Waiting:
        """What a row holds."""
        data = json.loads(text) if text else {"pending": [], "decisions": {}}
        return cls({one["call"]["id"]: one for one in data["pending"]}, data["decisions"])

    def changed(
        self, conversation: Conversation, pending: Sequence[Pending] | None, decisions: Mapping[str, Decision] | None
    ) -> Waiting:
        """With what is given in place of what was, for calls that are open."""
        if not (self.held or self.decided or pending or decisions):
            return self
        from ferrule.execution.decisions_json import decision_to_json, pending_to_json

        open_ids = {call.id for call in conversation.pending}
        for call_id in (*(one.call.id for one in pending or ()), *(decisions or ())):
            if call_id not in open_ids:
                raise ConversationError(f"the call {call_id!r} isn't open in this conversation, so it can't wait")
        held, decided = self.held, self.decided
        if pending is not None:
            held = {one.call.id: pending_to_json(one) for one in pending}
        if decisions is not None:
            decided = {call_id: decision_to_json(decision) for call_id, decision in decisions.items()}
        return Waiting(
            {call_id: one for call_id, one in held.items() if call_id in open_ids},
            {call_id: one for call_id, one in decided.items() if call_id in open_ids},
        )

    @property
    def text(self) -> str | None:
        """What a row holds of it."""
        if not self.held and not self.decided:
            return None
        return json.dumps({"pending": list(self.held.values()), "decisions": dict(self.decided)})

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The calls that wait."""
        if not self.held:
            return ()
        from ferrule.execution.decisions_json import pending_from_json

        return tuple(pending_from_json(one) for one in self.held.values())

    @property
    def decisions(self) -> Mapping[str, Decision]:
        """The decisions."""
        if not self.decided:
            return {}
        from ferrule.execution.decisions_json import decision_from_json

        return {call_id: decision_from_json(one) for call_id, one in self.decided.items()}
