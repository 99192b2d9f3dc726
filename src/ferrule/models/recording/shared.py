"""What stands once in a recording and is named by other rows: messages, lists of tools, settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrule.models.recording.differences import check_offers, describe_parts
from ferrule.models.recording.request import Request, Row, compute_digest
from ferrule.models.recording.rows import ExchangeRow, SharedRow


class SharedValues:
    """Values by their names, and the names of values."""

    def __init__(self) -> None:
        self._new: dict[str, SharedRow] = {}
        self._values: dict[str, Any] = {}
        self._digests: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._messages: set[str] = set()

    def keep(self, name: str, value: Any) -> None:
        """Take a value that is in the file."""
        self._values[name] = value
        self._digests[name] = digest = compute_digest(value)
        self._names.setdefault(digest, name)

    def share(self, value: Any) -> str:
        """The name of a value, whose row is to be written if it has none yet."""
        digest = compute_digest(value)
        if digest not in self._names:
            # A value may have been edited in the file, and so no longer be what its name says.
            name = digest if digest not in self._values else f"{digest}-{len(self._values)}"
            self._new[name] = SharedRow(id=name, value=value)
            self.keep(name, value)
        return self._names[digest]

    def take_new(self, names: Sequence[str]) -> list[SharedRow]:
        """The rows of those of these values that have none in the file yet."""
        return [self._new.pop(name) for name in names if name in self._new]

    def find(self, name: str) -> Any:
        """The value of a name. Raises `LookupError`."""
        if name not in self._values:
            raise LookupError(f"it names the row {name}, which isn't there")
        return self._values[name]

    def _find_message(self, name: str) -> Row:
        value: Row = self.find(name)
        if name not in self._messages:
            # Whatever is no message can't be described either.
            describe_parts(value)
            self._messages.add(name)
        return value

    def find_request(self, row: ExchangeRow) -> Request:
        """What an exchange asked. Raises `LookupError`, `TypeError` and `ValueError` for what is no request."""
        messages = tuple(map(self._find_message, row.messages))
        tools = tuple(self.find(row.tools)) if row.tools else ()
        settings = self.find(row.settings) if row.settings else {}
        check_offers(tools, settings)
        request = Request(messages, tools, settings)
        # Known from reading: a long conversation has each of its messages in many requests.
        request.__dict__["digests"] = tuple(self._digests[name] for name in row.messages)
        return request


def list_names(row: Any) -> Sequence[str]:
    """The names in a row of values that stand elsewhere."""
    if isinstance(row, ExchangeRow):
        return [*row.messages, row.tools, row.settings]
    return getattr(row, "shared", None) or ()
