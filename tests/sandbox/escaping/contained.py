"""Runs payloads in ferrule's sandbox: a run, a session or a shell of its own, in a given tier."""

import dataclasses
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager

from escaping.field import Field
from escaping.outcome import Outcome

MEMORY = 256 * 1024 * 1024
SECONDS = 10.0
# What a run may take beyond its limit before the parent counts as held up; generous, for a machine under load.
GRACE = 3.0


@asynccontextmanager
async def opened(where: str, tier: str) -> AsyncIterator[Callable[[Field], Awaitable[Outcome]]]:
    """Something that runs a payload in the sandbox."""
    if where == "shell":
        yield lambda field: run_in_shell(field, tier)
        return
    from ferrule.sandbox.python import PythonSandbox

    async with PythonSandbox(tier=tier) as sandbox:
        yield lambda field: run_in_python(field, sandbox, in_session=where == "session")
        last = await sandbox.run("40 + 2")
        assert last.value == 42, f"after all payloads the sandbox no longer works: {last}"


async def run_in_python(field: Field, sandbox, *, in_session: bool) -> Outcome:
    """Run a payload, and what comes after it in a run of its own."""
    payload = field.payload
    outcome = Outcome()
    if in_session:
        session = await sandbox.session(memory=MEMORY)
        run = session.run
    else:
        run = sandbox.run
    limit = payload.seconds or SECONDS
    given = {} if in_session else {"memory": MEMORY}
    outcome.text = await observed(run(field.python_prelude() + payload.code, timeout=limit, **given), limit, outcome)
    if in_session:
        await session.aclose()
    elif outcome.is_lost:
        outcome.hits["parent"] = "the zygote was lost"
    if payload.next_code:
        after = sandbox.run(field.python_prelude() + payload.next_code, timeout=SECONDS)
        outcome.next_text = await observed(after, SECONDS, outcome)
    return outcome


async def run_in_shell(field: Field, tier: str) -> Outcome:
    """Run a payload in a shell whose workspace is the field's."""
    from ferrule.sandbox.shell import ShellSandbox

    outcome = Outcome()
    limit = field.payload.seconds or SECONDS
    async with ShellSandbox(field.workspace, tier=tier) as shell:
        command = field.shell_prelude() + field.payload.code
        outcome.text = await observed(shell.run(command, timeout=limit), limit, outcome)
    return outcome


async def observed(running: Awaitable[object], limit: float, outcome: Outcome) -> bytes:
    """Everything that came back of a run; what it did to the parent is noted."""
    begin = time.monotonic()
    try:
        run = await running
    except Exception as error:  # noqa: BLE001 - whatever the parent didn't foresee is a hit
        outcome.hits["parent"] = f"raised {type(error).__name__}: {error}"[:500]
        return b""
    if time.monotonic() - begin > limit + GRACE:
        outcome.hits["time"] = outcome.hits["parent"] = f"came back after {time.monotonic() - begin:.1f} s"
    ended = getattr(getattr(run, "error", None), "kind", None)
    outcome.is_lost |= ended == "lost"
    if ended == "refused":
        outcome.hits["parent"] = "the checks refused it, so that it was never tried"
    outcome.files += len(getattr(run, "files", ()))
    return b"\n".join(gathered(run))


def gathered(value: object) -> Iterator[bytes]:
    """All text and bytes in a result, however deep."""
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, str):
        yield value.encode("utf-8", "surrogatepass")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for each in dataclasses.fields(value):
            yield from gathered(getattr(value, each.name))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from gathered(key)
            yield from gathered(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from gathered(inner)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield hex(value).encode()
    else:
        from ferrule.sandbox.python.wire.display import format_value

        yield format_value(value).encode("utf-8", "surrogatepass")
