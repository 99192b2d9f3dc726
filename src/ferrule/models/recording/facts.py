"""What differs from one machine, folder and day to the next in a recorded conversation.

Each fact has a name and a value, such as `workspace` and the folder: the file has `⟦workspace⟧` wherever a request or
an answer has the value, and a replay puts the value of its own machine there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ferrule.errors import SettingsError

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_SHORTEST = 3
_PIECES = ("text", "reasoning", "arguments")
_DURATION = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?= ?(?:ms|s|secs?|seconds?)\b)")


class Facts:
    """Replaces values by their names in JSON values, and back. Raises `SettingsError` for what can't be a fact."""

    def __init__(self, values: Mapping[str, str]) -> None:
        for name, value in values.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise SettingsError(f"the fact {name!r}: name it by lower-case letters, digits and '_'")
            if not isinstance(value, str) or len(value) < _SHORTEST:
                raise SettingsError(f"the fact {name!r} is a text of at least {_SHORTEST} characters, not {value!r}")
        self._placeholders: dict[str, str] = {}
        # The longest first: a folder may be in another one.
        for name, value in sorted(values.items(), key=lambda fact: -len(fact[1])):
            self._placeholders.setdefault(value, f"⟦{name}⟧")
        self._values = {f"⟦{name}⟧": value for name, value in values.items()}
        self._pattern = re.compile(
            "|".join(rf"(?<!\w){re.escape(one)}(?![\w-])" for one in self._placeholders) or r"(?!)"
        )
        self._placeholder = re.compile("|".join(map(re.escape, self._values)) or r"(?!)")

    def __bool__(self) -> bool:
        return bool(self._values)

    def hide(self, value: Any) -> Any:
        """A JSON value with names in place of the values."""
        return _map_texts(value, self._hide_text)

    def hide_message(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message as it is compared: of what a tool returned, durations are left out, which no two runs share."""
        hidden: dict[str, Any] = self.hide(message)
        if not self or message.get("role") != "tool":
            return hidden
        timeless: dict[str, Any] = _map_texts(hidden, lambda text: _DURATION.sub("⟦duration⟧", text))
        return timeless

    def hide_events(self, events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The events of an answer, as JSON; pieces of a text are joined where a value goes from one to the next."""
        return [self._hide_event(event) for event in events]

    def put_back(self, value: Any) -> Any:
        """A JSON value with values in place of the names."""
        return _map_texts(value, lambda text: self._placeholder.sub(lambda found: self._values[found[0]], text))

    def _hide_text(self, text: str) -> str:
        return self._pattern.sub(lambda found: self._placeholders[found[0]], text)

    def _hide_event(self, event: Mapping[str, Any]) -> dict[str, Any]:
        hidden: dict[str, Any] = self.hide(dict(event))
        name = next((one for one in _PIECES if isinstance(event.get(one), list)), None)
        if name is None:
            return hidden
        whole = self._hide_text("".join(event[name]))
        if whole != "".join(hidden[name]):
            hidden[name] = [whole]
            if spans := event.get("spans"):
                hidden["spans"] = [[spans[0][0], spans[-1][1]] if spans[0] and spans[-1] else None]
        return hidden


def _map_texts(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _map_texts(inner, change) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(inner, change) for inner in value]
    return value
