"""Approvals as data and as JSON: the request about a call, the decision on it, and a call that waits for one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from ferrule.conversation import MalformedCall, Message, ToolCall
from ferrule.errors import ConversationError, PolicyError
from ferrule.tools.intent import Effect, Intent, preview_from_json, preview_to_json

DecisionAction = Literal["allow", "deny", "edit", "always"]
AlwaysScope = Literal["session", "project"]


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that somebody must decide on.

    `arguments` are JSON values, validated, as the tool would get them; `defaults` are those of the parameters that the
    call leaves out, as far as the tool's schema has them. `reason` says why approval is needed, `always` what an
    "always" would allow (None if it wouldn't help), `problem` what was wrong with the last edit. `hash` identifies the
    tool, arguments, defaults and preview, and binds a decision to them.

    `is_running`: the call is running, and asks for what `intent` says in addition (`CallScope.authorize`); its
    arguments can't be changed any more. `is_edited`: these are the arguments of the last edit, to be confirmed.
    `is_changed`: the call was approved, and an earlier call of its message has changed what it would do. `agent` says
    which sub-agent made the call; empty for the model of the run itself. `workspace` is the folder that paths may be
    outside of, and `added_folders` are inside, too. `always_rules` are the exact rules of an "always", each as a line,
    and `can_save` tells whether it can be given for later sessions in this project too.
    """

    call: ToolCall
    tool: str
    arguments: Mapping[str, Any]
    intent: Intent | None
    reason: str
    always: str | None
    hash: str
    problem: str = ""
    is_running: bool = False
    is_edited: bool = False
    is_changed: bool = False
    agent: str = ""
    workspace: str | None = None
    always_rules: tuple[str, ...] = ()
    can_save: bool = False
    added_folders: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer to a request. `by` is who gave it; `hash` binds it to the request.

    `reason` is recorded in the journal, and the model gets that of a denial. `comment` is for a call that runs: the
    model gets it with the result. `scope` says how long an "always" holds: for this session, or in this project.

    Raises `PolicyError` for any other action, since what isn't understood must not run a call.
    """

    action: DecisionAction
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    by: str = ""
    hash: str | None = None
    comment: str = ""
    scope: AlwaysScope = "session"

    def __post_init__(self) -> None:
        if self.action not in get_args(DecisionAction):
            raise PolicyError(f"a decision must be {' or '.join(get_args(DecisionAction))}, not {self.action!r}")
        if self.scope not in get_args(AlwaysScope):
            raise PolicyError(f"the scope of a decision must be session or project, not {self.scope!r}")

    @classmethod
    def allow(cls, by: str = "", comment: str = "") -> Decision:
        """Run the call, this time; the model gets the comment with the result."""
        return cls("allow", by=by, comment=comment)

    @classmethod
    def deny(cls, reason: str = "", by: str = "") -> Decision:
        """Don't run the call; the model gets the reason."""
        return cls("deny", reason, by=by)

    @classmethod
    def edit(cls, arguments: Mapping[str, Any], by: str = "") -> Decision:
        """Run the call with other arguments, which are validated and judged again; a note tells the model.

        An approver whose `confirms_edits` is true, such as one that asks a person, is shown the edited call first.
        """
        return cls("edit", arguments=arguments, by=by)

    @classmethod
    def always(cls, by: str = "", scope: AlwaysScope = "session") -> Decision:
        """Run the call, and don't ask again about calls that the request's `always` covers.

        The scope `project` saves that for later sessions too, if the request's `can_save` is true.
        """
        return cls("always", by=by, scope=scope)


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that isn't run yet: it waits for a decision or, if `request` is None, for an earlier call that does."""

    call: ToolCall | MalformedCall
    reason: str
    request: ApprovalRequest | None = None

    def decide(self, decision: Decision) -> Decision:
        """Bind a decision to this call, for `Executor.run_all(decisions=...)`.

        Raises `PolicyError` if this call doesn't wait for a decision itself.
        """
        if self.request is None:
            raise PolicyError(f"the call {self.call.id!r} waits for an earlier one; decide on that one")
        return replace(decision, hash=self.request.hash)


def hash_request(tool: str, arguments: Mapping[str, Any], defaults: Mapping[str, Any], intent: Intent | None) -> str:
    """Hash a tool's name, arguments, defaults, and its intent's preview and precondition: SHA-256, in hexadecimal."""
    seen = None if intent is None else [preview_to_json(intent.preview), intent.precondition]
    text = json.dumps([tool, arguments, defaults, seen], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def pending_to_json(pending: Pending) -> dict[str, Any]:
    """Convert a waiting call to JSON values, with everything needed to decide on it."""
    from ferrule.formats.conversation_json import value_to_json

    request = pending.request
    data: dict[str, Any] = {"call": _call_to_json(pending.call), "reason": pending.reason}
    if request is not None:
        data["request"] = {
            "tool": request.tool,
            "arguments": value_to_json(dict(request.arguments), f"the arguments of {pending.call.id!r}"),
            "intent": None if request.intent is None else _intent_to_json(request.intent),
            "reason": request.reason,
            "always": request.always,
            "hash": request.hash,
            "problem": request.problem,
            "is_edited": request.is_edited,
            "agent": request.agent,
            "workspace": request.workspace,
            "always_rules": list(request.always_rules),
            "can_save": request.can_save,
            "added_folders": list(request.added_folders),
            "defaults": value_to_json(dict(request.defaults), f"the defaults of {request.tool!r}"),
        }
    return data


def pending_from_json(data: Mapping[str, Any]) -> Pending:
    """Read a waiting call from the values of `pending_to_json`. Raises `ConversationError`."""
    from ferrule.formats.conversation_json import value_from_json

    try:
        call = _call_from_json(data["call"])
        request = data.get("request")
        if request is None:
            return Pending(call, data["reason"])
        if not isinstance(call, ToolCall):
            raise ConversationError(f"the call {call.id!r} is malformed, so nobody can be asked about it")
        intent = request["intent"]
        asked = ApprovalRequest(
            call,
            request["tool"],
            value_from_json(request["arguments"], f"the arguments of {call.id!r}"),
            None if intent is None else _intent_from_json(intent),
            request["reason"],
            request["always"],
            request["hash"],
            request["problem"],
            is_edited=request.get("is_edited", False),
            agent=request.get("agent", ""),
            workspace=request.get("workspace"),
            always_rules=tuple(request.get("always_rules", ())),
            can_save=request.get("can_save", False),
            added_folders=tuple(request.get("added_folders", ())),
            defaults=value_from_json(request.get("defaults", {}), f"the defaults of {request['tool']!r}"),
        )
        return Pending(call, data["reason"], asked)
    except (LookupError, TypeError) as error:
        raise ConversationError(f"not a waiting call: {type(error).__name__} {error}") from error


def decision_to_json(decision: Decision) -> dict[str, Any]:
    """Convert a decision to JSON values."""
    from ferrule.formats.conversation_json import value_to_json

    arguments = decision.arguments
    edited = None if arguments is None else value_to_json(dict(arguments), "the edited arguments")
    return {
        "action": decision.action,
        "reason": decision.reason,
        "arguments": edited,
        "by": decision.by,
        "hash": decision.hash,
        "comment": decision.comment,
        "scope": decision.scope,
    }


def decision_from_json(data: Mapping[str, Any]) -> Decision:
    """Read a decision from the values of `decision_to_json`. Raises `ConversationError`."""
    from ferrule.formats.conversation_json import value_from_json

    try:
        arguments = value_from_json(data["arguments"], "the edited arguments")
        return Decision(
            data["action"],
            data["reason"],
            arguments,
            data["by"],
            data["hash"],
            data.get("comment", ""),
            data.get("scope", "session"),
        )
    except PolicyError as error:
        raise ConversationError(str(error)) from error
    except (LookupError, TypeError) as error:
        raise ConversationError(f"not a decision: {type(error).__name__} {error}") from error


def _call_to_json(call: ToolCall | MalformedCall) -> dict[str, Any]:
    from ferrule.formats.conversation_json import message_to_json

    (data,) = message_to_json(Message("assistant", (call,)))["parts"]
    return dict(data)


def _call_from_json(data: Any) -> ToolCall | MalformedCall:
    from ferrule.formats.conversation_json import message_from_json

    (call,) = message_from_json({"role": "assistant", "parts": [data]}, None, "the call that waits").calls
    return call


def _intent_to_json(intent: Intent) -> dict[str, Any]:
    effects = [
        {
            "kind": effect.kind,
            "target": effect.target,
            "words": list(effect.words),
            "is_protected": effect.is_protected,
            "is_recursive": effect.is_recursive,
        }
        for effect in intent.effects
    ]
    preview = preview_to_json(intent.preview)
    return {"effects": effects, "preview": preview, "precondition": intent.precondition, "asks": intent.asks}


def _intent_from_json(data: Mapping[str, Any]) -> Intent:
    effects = tuple(
        Effect(
            one["kind"],
            one["target"],
            tuple(one.get("words", ())),
            one.get("is_protected", False),
            one.get("is_recursive", False),
        )
        for one in data["effects"]
    )
    return Intent(effects, preview_from_json(data["preview"]), data["precondition"], data.get("asks", False))
