"""What is refused before a model is asked: tools and modes that it wasn't trained with, and a missing question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.conversation import Conversation, Text
from ferrule.errors import ConversationError, ModelError, SettingsError, choose_advice

if TYPE_CHECKING:
    from ferrule.agent.hooks import ModelRequest, RunState
    from ferrule.models.protocol import Model


def check_tools(model: Model, names: Sequence[str]) -> None:
    """Raise `ModelError` if the model can't use one of these tools, or needs one that isn't among them."""
    known, is_optional = model.capabilities.tools, model.capabilities.tools_optional
    if known is None:
        if not names and not is_optional:
            offer = choose_advice(
                "offer it one with using(…)", "name one with --tools, leave out --no-tools or --no-calculator"
            )
            raise ModelError(f"{model.name} was trained to call tools; {offer}, or {_advise_another()}")
        return
    unusable = [name for name in names if name not in known]
    if unusable:
        raise ModelError(
            f"{model.name} can only use {', '.join(known) or 'no tool'}, not {', '.join(unusable)}; "
            f"leave {'that' if len(unusable) == 1 else 'those'} out, or {_advise_another()}"
        )
    missing = [name for name in known if name not in names]
    if missing and not is_optional:
        offer = choose_advice(f"offer it with using({', '.join(missing)})", "leave out --no-tools or --no-calculator")
        raise ModelError(f"{model.name} was trained to call {', '.join(missing)}; {offer}, or {_advise_another()}")


def _advise_another() -> str:
    return choose_advice("ask another model", "choose another --model")


def check_text_mode(model: Model, mode: str) -> None:
    """Raise `ModelError` if calls in another notation would make the model write nonsense."""
    if not model.capabilities.tools_optional:
        advice = choose_advice("leave out mode=…, or ask another model", "leave out --mode, or choose another --model")
        raise ModelError(f"{model.name} was trained to write calls in its own notation, not in {mode}; {advice}")


def check_question(conversation: Conversation) -> None:
    """Raise `ConversationError` if there is nothing to answer."""
    last = conversation.messages[-1] if conversation.messages else None
    if last is not None and last.role == "user":
        for part in last.parts:
            if type(part) is not Text or part.text.strip():
                return
        raise ConversationError("the question is empty; give chat(…) a text")
    if all(message.role == "system" for message in conversation.messages):
        raise ConversationError("there is no question to answer; add one with chat(…)")


def make_request_error(hook: Callable[[RunState], Any], request: ModelRequest) -> SettingsError:
    """Make the error for a hook that gave a request a conversation or settings of another type."""
    value: Any = request.conversation
    name, expected = "conversation", "a Conversation"
    if isinstance(value, Conversation):
        name, value, expected = "settings", request.settings, "ModelSettings; see state.change_settings(temperature=…)"
    hook_name = getattr(hook, "__qualname__", repr(hook))
    return SettingsError(f"{hook_name} set state.request.{name} to a {type(value).__name__}; it must be {expected}")
