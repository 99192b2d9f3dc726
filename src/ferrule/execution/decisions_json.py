"""Calls that wait, and decisions on them, as JSON: so that a paused conversation is decided on in another process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferrule.conversation import MalformedCall, Message, ToolCall
from ferrule.conversation_json import message_from_json, message_to_json, value_from_json, value_to_json
from ferrule.errors import ConversationError
from ferrule.execution.decisions import Decision, Pending, Request
from ferrule.intent import Effect, Intent


def pending_to_json(pending: Pending) -> dict[str, Any]:
    """A call that waits, with all that somebody must see to decide on it."""
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
        }
    return data


def pending_from_json(data: Mapping[str, Any]) -> Pending:
    """The waiting call that `pending_to_json` gave these values for. Raises `ConversationError`."""
    try:
        call = _call_from_json(data["call"])
        request = data.get("request")
        if request is None:
            return Pending(call, data["reason"])
        if not isinstance(call, ToolCall):
            raise ConversationError(f"the call {call.id!r} can't be read, so nobody can be asked about it")
        intent = request["intent"]
        asked = Request(
            call,
            request["tool"],
            value_from_json(request["arguments"], f"the arguments of {call.id!r}"),
            None if intent is None else _intent_from_json(intent),
            request["reason"],
            request["always"],
            request["hash"],
            request["problem"],
        )
        return Pending(call, data["reason"], asked)
    except (LookupError, TypeError) as error:
        raise ConversationError(f"no call that waits: {type(error).__name__} {error}") from error


def decision_to_json(decision: Decision) -> dict[str, Any]:
    """A decision; its hash binds it to what was asked."""
    arguments = decision.arguments
    edited = None if arguments is None else value_to_json(dict(arguments), "the edited arguments")
    return {
        "action": decision.action,
        "reason": decision.reason,
        "arguments": edited,
        "by": decision.by,
        "hash": decision.hash,
    }


def decision_from_json(data: Mapping[str, Any]) -> Decision:
    """The decision that `decision_to_json` gave these values for. Raises `ConversationError`."""
    try:
        arguments = value_from_json(data["arguments"], "the edited arguments")
        action = data["action"]
        if action not in ("allow", "deny", "edit", "always"):
            raise ConversationError(f"a decision is allow, deny, edit or always, not {action!r}")
        return Decision(action, data["reason"], arguments, data["by"], data["hash"])
    except (LookupError, TypeError) as error:
        raise ConversationError(f"no decision: {type(error).__name__} {error}") from error


def _call_to_json(call: ToolCall | MalformedCall) -> dict[str, Any]:
    (data,) = message_to_json(Message("assistant", (call,)))["parts"]
    return dict(data)


def _call_from_json(data: Any) -> ToolCall | MalformedCall:
    (call,) = message_from_json({"role": "assistant", "parts": [data]}, None, "the call that waits").calls
    return call


def _intent_to_json(intent: Intent) -> dict[str, Any]:
    effects = [{"kind": effect.kind, "target": effect.target} for effect in intent.effects]
    return {"effects": effects, "preview": intent.preview, "precondition": intent.precondition, "asks": intent.asks}


def _intent_from_json(data: Mapping[str, Any]) -> Intent:
    effects = tuple(Effect(effect["kind"], effect["target"]) for effect in data["effects"])
    return Intent(effects, data["preview"], data["precondition"], data.get("asks", False))
