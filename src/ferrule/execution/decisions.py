"""Approvals as data and as JSON: the request about a call, the decision on it, and a call that waits for one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, final, get_args

from ferrule.conversation import MalformedCall, Message, ToolCall
from ferrule.errors import ConversationError, PolicyError
from ferrule.execution.preview import (
    CallPreview,
    EffectPreview,
    effect_from_json,
    effect_preview_from_json,
    effect_preview_to_json,
    effect_to_json,
    preview_effects,
)
from ferrule.tools.intent import Diff, Intent, preview_from_json, preview_to_json

DecisionAction = Literal["allow", "deny", "edit", "always"]
AlwaysScope = Literal["session", "project"]
NOBODY = "nobody"
"""Who denied a call (`Decision.by`) that nobody could be asked about."""


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
    outside of, and `added_folders` are inside, too. `definition_change` is how a server has changed the tool since an
    "always" that doesn't count any more. `always_rules` are the exact rules of an "always", each as a line,
    and `can_save` tells whether it can be given for later sessions in this project too. `origin` is that of the tool,
    such as `mcp:notes`. `preview` is all that is shown of what the call would do; it is made for approvers that show
    it (`confirms_edits`) and for calls that wait, for others `find_preview` makes it.
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
    definition_change: Diff | None = None
    origin: str = ""
    preview: CallPreview | None = None

    def find_preview(self) -> CallPreview:
        """Return the preview, or make it now, which follows the links of the paths."""
        if self.preview is not None:
            return self.preview
        folders = () if self.workspace is None else (self.workspace, *self.added_folders)
        return self.join_preview(() if self.intent is None else preview_effects(self.intent, folders))

    def join_preview(self, effects: tuple[EffectPreview, ...]) -> CallPreview:
        """Join the effects of a preview with what the request has itself."""
        return CallPreview(effects, "" if self.intent is None else self.intent.preview, self.arguments, self.defaults)


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
        if not isinstance(self.arguments, Mapping) and (self.action == "edit" or self.arguments is not None):
            raise PolicyError(
                f"Decision.edit takes the new arguments as a dict, such as {{'city': 'Rome'}}, not {self.arguments!r}"
            )
        for name in ("reason", "by", "comment"):
            if not isinstance(getattr(self, name), str):
                raise PolicyError(f"the {name} of a decision must be a text, not {getattr(self, name)!r}")

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


@final
@dataclass(frozen=True, slots=True)
class Pending:
    """A call that isn't run yet: it waits for a decision or, if `request` is None, for an earlier call that does."""

    call: ToolCall | MalformedCall
    reason: str
    request: ApprovalRequest | None = None

    def decide(self, decision: Decision) -> Decision:
        """Bind a decision to this call, for `Executor.run_all(decisions=...)`.

        Raises `PolicyError` if this call doesn't wait for a decision itself, and for anything but a decision.
        """
        if not isinstance(decision, Decision):
            raise PolicyError(f"decide takes a Decision, such as Decision.allow(), not {decision!r}")
        if self.request is None:
            raise PolicyError(f"the call {self.call.id!r} waits for an earlier one; decide on that one")
        return replace(decision, hash=self.request.hash)


def check_decisions(decisions: Mapping[str, Decision]) -> Mapping[str, Decision]:
    """Return the decisions. Raises `PolicyError` if they aren't by call id."""
    if not isinstance(decisions, Mapping):
        raise PolicyError(f"decisions must be a dict of call ids to Decisions, not {decisions!r}")
    return decisions


def check_bound(call: ToolCall | MalformedCall, decision: Decision) -> None:
    """Raise `PolicyError` for a decision that `Pending.decide` didn't make."""
    if not isinstance(decision, Decision):
        raise PolicyError(f"the decision on {call.id!r} must be a Decision, not {decision!r}")
    if decision.hash is None:
        raise PolicyError(f"the decision on {call.id!r} isn't bound to a request; use Pending.decide")


def hash_request(
    tool: str,
    arguments: Mapping[str, Any],
    defaults: Mapping[str, Any],
    intent: Intent | None,
    definition_change: Diff | None = None,
) -> str:
    """Hash what a person is shown of a request: SHA-256, in hexadecimal.

    That is the tool's name, arguments, defaults, its intent's preview and precondition, and the change of its
    definition.
    """
    seen = None if intent is None else [preview_to_json(intent.preview), intent.precondition]
    changed = [] if definition_change is None else [preview_to_json(definition_change)]
    text = json.dumps([tool, arguments, defaults, seen, *changed], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def pending_to_json(pending: Pending) -> dict[str, Any]:
    """Convert a waiting call to JSON values, with everything needed to decide on it."""
    from ferrule.formats.conversation_json import value_to_json

    request = pending.request
    data: dict[str, Any] = {"call": _call_to_json(pending.call), "reason": pending.reason}
    if request is not None:
        change = request.definition_change
        data["request"] = {
            "tool": request.tool,
            "arguments": value_to_json(dict(request.arguments), f"the arguments of {pending.call.id!r}"),
            "intent": None if request.intent is None else _intent_to_json(request.intent),
            "reason": request.reason,
            "always": request.always,
            "hash": request.hash,
            "problem": request.problem,
            "is_edited": request.is_edited,
            "is_changed": request.is_changed,
            "agent": request.agent,
            "workspace": request.workspace,
            "always_rules": list(request.always_rules),
            "can_save": request.can_save,
            "added_folders": list(request.added_folders),
            "defaults": value_to_json(dict(request.defaults), f"the defaults of {request.tool!r}"),
            "definition_change": None if change is None else preview_to_json(change),
            "origin": request.origin,
            "preview": _effects_to_json(request.preview),
        }
    return data


def pending_from_json(data: Mapping[str, Any]) -> Pending:
    """Read a waiting call from the values of `pending_to_json`. Raises `ConversationError`."""
    from ferrule.formats.conversation_json import value_from_json

    try:
        call = _call_from_json(data["call"])
        request = data.get("request")
        _check_types({"reason": data["reason"]})
        if request is None:
            return Pending(call, data["reason"])
        _check_types(request)
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
            is_changed=request.get("is_changed", False),
            agent=request.get("agent", ""),
            workspace=request.get("workspace"),
            always_rules=tuple(request.get("always_rules", ())),
            can_save=request.get("can_save", False),
            added_folders=tuple(request.get("added_folders", ())),
            defaults=value_from_json(request.get("defaults", {}), f"the defaults of {request['tool']!r}"),
            definition_change=_change_from_json(request.get("definition_change")),
            origin=request.get("origin", ""),
        )
        if request.get("preview") is not None:
            asked = replace(asked, preview=asked.join_preview(_effects_from_json(request["preview"])))
        return Pending(call, data["reason"], asked)
    except (LookupError, TypeError, AttributeError) as error:
        raise ConversationError(f"not a waiting call: {type(error).__name__} {error}") from error


def _change_from_json(data: Any) -> Diff | None:
    change = None if data is None else preview_from_json(data)
    if change is not None and not isinstance(change, Diff):
        raise TypeError(f"a change of a definition is a diff, not {data!r}")
    return change


def decision_to_json(decision: Decision) -> dict[str, Any]:
    """Convert a decision to JSON values. Raises `PolicyError` for anything else."""
    if not isinstance(decision, Decision):
        raise PolicyError(f"a Decision is saved, such as pending.decide(Decision.allow()), not {decision!r}")
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
        _check_types({name: value for name, value in data.items() if name != "arguments" or value is not None})
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
    except (LookupError, TypeError, AttributeError) as error:
        raise ConversationError(f"not a decision: {type(error).__name__} {error}") from error


_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("tool", "reason", "problem", "agent", "by", "comment", "target", "kind", "origin"), str),
    **dict.fromkeys(("always", "workspace", "precondition", "hash", "outside", "real_path"), str | None),
    **dict.fromkeys(("is_edited", "can_save", "is_protected", "is_recursive", "is_changed", "asks"), bool),
    **dict.fromkeys(("arguments", "defaults"), dict),
    **dict.fromkeys(("always_rules", "added_folders", "words", "effects"), list),
}


def _check_types(data: Mapping[str, Any]) -> None:
    """Check the types of the fields of a request, an intent, an effect or a decision. Raises `ConversationError`."""
    for name, value in data.items():
        if not isinstance(value, _TYPES.get(name, object)) or (
            isinstance(value, list) and name != "effects" and not all(isinstance(one, str) for one in value)
        ):
            raise ConversationError(f"of a waiting call or a decision, {name} can't be {value!r:.60}")


def _call_to_json(call: ToolCall | MalformedCall) -> dict[str, Any]:
    from ferrule.formats.conversation_json import message_to_json

    (data,) = message_to_json(Message("assistant", (call,)))["parts"]
    return dict(data)


def _call_from_json(data: Any) -> ToolCall | MalformedCall:
    from ferrule.formats.conversation_json import message_from_json

    (call,) = message_from_json({"role": "assistant", "parts": [data]}, None, "the call that waits").calls
    return call


def _intent_to_json(intent: Intent) -> dict[str, Any]:
    return {
        "effects": list(map(effect_to_json, intent.effects)),
        "preview": preview_to_json(intent.preview),
        "precondition": intent.precondition,
        "asks": intent.asks,
    }


def _intent_from_json(data: Mapping[str, Any]) -> Intent:
    for one in (data, *data["effects"]):
        _check_types(one)
    effects = tuple(map(effect_from_json, data["effects"]))
    return Intent(effects, preview_from_json(data["preview"]), data["precondition"], data.get("asks", False))


def _effects_to_json(preview: CallPreview | None) -> dict[str, Any] | None:
    """Convert to JSON values what of a preview the request doesn't have itself."""
    return None if preview is None else {"effects": list(map(effect_preview_to_json, preview.effects))}


def _effects_from_json(data: Mapping[str, Any]) -> tuple[EffectPreview, ...]:
    for one in (data, *data["effects"]):
        _check_types(one)
    return tuple(map(effect_preview_from_json, data["effects"]))
