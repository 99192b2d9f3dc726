"""Names of tools as hosted models take them, and back.

OpenAI, Anthropic and Google differ in what a name may hold; what all three take is letters, digits, `_` and `-`, a
letter or `_` first, 64 characters at most. A name like that goes as it is. Any other gets one of its own, which depends
on nothing but the names that are offered, so that one conversation is written the same way on every day.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from ferrule.toolspec import ToolSpec

_ALLOWED = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64


class ToolNames:
    """What the tools on offer are called for a provider (`wire`), and whom a provider means (`own`)."""

    def __init__(self, specs: Iterable[ToolSpec] = ()) -> None:
        names = list(dict.fromkeys(spec.name for spec in specs))
        self._wire = {name: name for name in names if _ALLOWED.fullmatch(name)}
        self._own = dict(self._wire)
        # Sorted, so that a tool's name doesn't change where the same tools are offered in another order.
        for name in sorted(set(names) - set(self._wire)):
            plain = _spelled(name)
            chosen = plain if plain not in self._own and len(name) <= _LONGEST else self._marked(name)
            self._wire[name] = chosen
            self._own[chosen] = name

    def wire(self, name: str) -> str:
        """The provider's word for a tool, also for one that is no longer offered."""
        known = self._wire.get(name)
        if known is not None:
            return known
        return name if _ALLOWED.fullmatch(name) and name not in self._own else self._marked(name)

    def own(self, wire_name: str) -> str:
        """The tool that a provider calls so; a name that was not offered stays as it is."""
        return self._own.get(wire_name, wire_name)

    def _marked(self, name: str) -> str:
        """A name with a piece of its hash, longer where that is taken."""
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        spelled = _spelled(name)
        for length in range(8, _LONGEST):
            marked = f"{spelled[: _LONGEST - length - 1]}_{digest[:length]}"
            if marked not in self._own:
                break
        return marked


def _spelled(name: str) -> str:
    """The name with what is refused replaced by `_`, cut to the length that is allowed."""
    spelled = _REFUSED.sub("_", name) or "tool"
    return (spelled if spelled[0].isalpha() or spelled[0] == "_" else f"_{spelled}")[:_LONGEST]
