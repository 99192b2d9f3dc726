"""What is asked about a call, what was answered, and a call that waits for its answer, as data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ferrule.conversation import MalformedCall, ToolCall
from ferrule.errors import PolicyError
from ferrule.intent import Intent


@dataclass(frozen=True, slots=True)
class Request:
    """A call that somebody must decide on.

    `arguments` are JSON values, checked, as the tool would get them. `reason` says why it is asked, `always` what an
    "always" would cover (None where no "always" can help), `problem` what was wrong with the last edit. `hash` names
    the tool, arguments and preview: what a decision is bound to.
    """

    call: ToolCall
    tool: str
    arguments: Mapping[str, Any]
    intent: Intent | None
    reason: str
    always: str | None
    hash: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer to a request. `by` says who gave it; `hash` binds it to what it was given on."""

    action: Literal["allow", "deny", "edit", "always"]
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    by: str = ""
    hash: str | None = None

    @classmethod
    def allow(cls, by: str = "") -> Decision:
        """Run it this once."""
        return cls("allow", by=by)

    @classmethod
    def deny(cls, reason: str = "", by: str = "") -> Decision:
        """Don't run it; the model is told the reason."""
        return cls("deny", reason, by=by)

    @classmethod
    def edit(cls, arguments: Mapping[str, Any], by: str = "") -> Decision:
        """Run it with other arguments: they are checked and judged again, and the model is told of them."""
        return cls("edit", arguments=arguments, by=by)

    @classmethod
    def always(cls, by: str = "") -> Decision:
        """Run it, and don't ask again for calls in the request's `always` scope."""
        return cls("always", by=by)


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that is not run yet: it waits for a decision, or (`request` None) for an earlier call that does."""

    call: ToolCall | MalformedCall
    reason: str
    request: Request | None = None

    def decide(self, decision: Decision) -> Decision:
        """The decision, bound to this call as it stands now; give it to `Executor.run_all(decisions=...)`.

        Raises `PolicyError` where this call itself waits for no decision.
        """
        if self.request is None:
            raise PolicyError(f"the call {self.call.id!r} waits for an earlier one; decide on that")
        return replace(decision, hash=self.request.hash)


def request_hash(tool: str, arguments: Mapping[str, Any], intent: Intent | None) -> str:
    """The hexadecimal SHA-256 of a tool's name, its arguments, and the preview and precondition of its intent."""
    seen = None if intent is None else [intent.preview, intent.precondition]
    text = json.dumps([tool, arguments, seen], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
