"""What a template says about how a number slot is drawn: `int`, `money`, `int 2..9`, `decimal nonzero`."""

import re
from dataclasses import dataclass

HINT_KINDS = ("any", "int", "small", "medium", "decimal", "money", "percent")
_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)\Z")


class HintError(ValueError):
    """A hint that is not one."""


@dataclass(frozen=True, slots=True)
class Hint:
    """How a number is drawn; with `low` and `high`, from that range, both ends included."""

    kind: str = "any"
    low: float | None = None
    high: float | None = None
    nonzero: bool = False


def parse_hint(text: str) -> Hint:
    """The hint written in a section's head. Raises HintError."""
    kind, low, high, nonzero = "", None, None, False
    for token in text.replace(",", " ").split():
        bounds = _RANGE.match(token)
        if token in HINT_KINDS and not kind:
            kind = token
        elif token == "nonzero":
            nonzero = True
        elif bounds and low is None:
            low, high = float(bounds[1]), float(bounds[2])
            if low > high:
                raise HintError(f"the range {token!r} is empty")
        else:
            raise HintError(f"unknown hint {token!r}: {', '.join(HINT_KINDS)}, nonzero, or a range such as 2..9")
    if low is not None and not kind:
        kind = "int"
    return Hint(kind or "any", low, high, nonzero)
