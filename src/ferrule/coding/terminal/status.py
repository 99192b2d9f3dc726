"""The status line below the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.coding.program import CodingSession


def describe_status(coding: CodingSession | None, seconds: float | None, width: int, is_leaving: bool) -> str:
    """Describe the session in at most `width` columns; what matters least is left out first.

    `seconds` is how long the turn has taken, None if there is none.
    """
    if is_leaving:
        return _fit(["Ctrl-C again leaves"], width)
    if coding is None:
        return _fit(["starting"], width)
    from ferrule._util.pluralize import pluralize
    from ferrule._util.terminal_text import escape_line
    from ferrule.coding.meter import format_count

    meter = coding.meter
    parts = [coding.profile, escape_line(coding.session.model_name)]
    if seconds is not None:
        parts.insert(0, f"{seconds:.0f} s, Ctrl-C stops")
    if meter.context_left is not None:
        parts.append(f"{meter.context_left:.0%} context left")
    jobs = coding.count_jobs()
    if jobs:
        parts.append(pluralize(jobs, "job"))
    total = meter.total
    if total.prompt_tokens or total.sampled_tokens:
        parts.append(f"{format_count(total.prompt_tokens + total.sampled_tokens)} tokens")
    if meter.dollars:
        parts.append(f"${meter.dollars:.3f}")
    return _fit(parts, width)


def _fit(parts: list[str], width: int) -> str:
    while len(parts) > 1 and len(" · ".join(parts)) + 2 > width:
        parts = parts[:-1]
    line = f" {' · '.join(parts)} "
    return line if len(line) <= width else f"{line[: max(0, width - 1)]}…"
