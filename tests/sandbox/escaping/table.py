"""By family: what hits in a plain subprocess and what in the sandbox, in each circumstance."""

from dataclasses import dataclass, field

from escaping.circumstances import TIERS, USERS, run_corpus
from escaping.payloads import Payload, payloads

Found = dict[str, dict[str, dict[str, str]]]


@dataclass(slots=True)
class Row:
    """One family."""

    family: str
    payloads: int = 0
    plain: dict[str, int] = field(default_factory=lambda: dict.fromkeys(USERS, 0))
    """By user: how many hit their canary in a plain subprocess."""

    sandbox: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TIERS, 0))
    """By tier: how many hit anything in the sandbox, as any user, in a run, a session or a shell."""

    got_out: list[str] = field(default_factory=list)
    """Those that hit although the tier promises to stop them."""

    missed: list[str] = field(default_factory=list)
    """Those that did not hit in a plain subprocess, although they should."""


def rows(places: tuple[str, ...] = ("python", "session", "shell")) -> list[Row]:
    """Run everything: some minutes."""
    plain = {user: run_corpus("plain", user=user) for user in USERS}
    contained = {
        tier: [run_corpus(place, user=user, tier=tier) for place in places for user in USERS] for tier in TIERS
    }
    found: dict[str, Row] = {}
    for payload in payloads():
        row = found.setdefault(payload.family, Row(payload.family))
        row.payloads += 1
        count_plain(row, payload, plain)
        for tier in TIERS:
            count_contained(row, payload, tier, contained[tier])
    return list(found.values())


def count_plain(row: Row, payload: Payload, plain: dict[str, Found]) -> None:
    """Add what a payload hit in plain subprocesses."""
    for user in USERS:
        if payload.canaries & plain[user][payload.name]["hits"].keys():
            row.plain[user] += 1
        elif user == "root" or not payload.needs_root:
            row.missed.append(f"{payload.name} as {user}")


def count_contained(row: Row, payload: Payload, tier: str, contained: list[Found]) -> None:
    """Add what a payload hit in the sandbox."""
    hits = {canary for found in contained if payload.name in found for canary in found[payload.name]["hits"]}
    row.sandbox[tier] += bool(hits)
    if hits and (tier in payload.tiers or hits - payload.canaries):
        row.got_out.append(f"{payload.name} in {tier}")


def markdown(found: list[Row]) -> str:
    """The table, with a line for all."""
    heads = ["family", "payloads", *(f"plain, {user}" for user in USERS), *TIERS]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    lines += [f"| {' | '.join(cells(row))} |" for row in [*found, total(found)]]
    return "\n".join(lines)


def cells(row: Row) -> list[str]:
    """One line of the table. What isn't promised is marked by a star, what got out by its name."""
    taken = [row.family, str(row.payloads), *(str(row.plain[user]) for user in USERS)]
    for tier in TIERS:
        out = [name for name in row.got_out if name.endswith(f" in {tier}")]
        taken.append(
            f"{row.sandbox[tier]} **({', '.join(out)})**"
            if out
            else f"{row.sandbox[tier]}{'*' * bool(row.sandbox[tier])}"
        )
    return taken


def total(found: list[Row]) -> Row:
    """All families together."""
    whole = Row("all", sum(row.payloads for row in found))
    whole.plain = {user: sum(row.plain[user] for row in found) for user in USERS}
    whole.sandbox = {tier: sum(row.sandbox[tier] for row in found) for tier in TIERS}
    return whole
