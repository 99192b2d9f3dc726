"""Runs payloads in one place, and prints as JSON what each hit.

python -m escaping.corpus plain|python|session|shell [--tier full|container] [--only NAME ...]
"""

import argparse
import asyncio
import json
import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable

from escaping.census import Watch
from escaping.field import Field
from escaping.outcome import Outcome
from escaping.payloads import Payload, payloads
from escaping.plain import run_plain
from escaping.world import SECRET_NAME, World, world

AT_ONCE = 4
# More than this, above what there was before, is a hit.
PROCESSES, THREADS, MEMORY = 30, 1200, 800_000_000
# Seconds in which what a run started has to be gone.
PATIENCE = 1.0

Runner = Callable[[Field], Awaitable[Outcome]]


async def attempt(around: World, payload: Payload, run: Runner) -> dict[str, object]:
    """Run one payload and say what it hit."""
    field = Field(around, payload)
    begin = time.monotonic()
    try:
        outcome = await (run_counted(field, run) if payload.alone else run(field))
        hits = field.hits(outcome.text, outcome.next_text) | outcome.hits
        if flood := outcome.flood():
            hits["flood"] = flood
        about = outcome.text[-600:].decode(errors="replace")
        return {"hits": hits, "seconds": round(time.monotonic() - begin, 3), "end_of_output": about}
    finally:
        field.close()


async def run_counted(field: Field, run: Runner) -> Outcome:
    """Run a payload while nothing else runs, and count what it takes and leaves."""
    async with Watch() as watch:
        outcome = await run(field)
        if left := await watch.left(PATIENCE):
            outcome.hits["running"] = f"{left} more than before"
            if run is run_plain:
                await watch.end_new()
    most, before = watch.most, watch.before
    if most.processes - before.processes > PROCESSES:
        outcome.hits["processes"] = f"{most.processes - before.processes} processes"
    if most.threads - before.threads > THREADS:
        outcome.hits["threads"] = f"{most.threads - before.threads} threads"
    if most.memory - before.memory > MEMORY:
        outcome.hits["memory"] = f"{most.memory - before.memory:,} bytes"
    return outcome


async def attempt_all(around: World, chosen: list[Payload], run: Runner) -> dict[str, dict[str, object]]:
    """Run what may run together, then the rest one at a time."""
    places = asyncio.Semaphore(AT_ONCE)

    async def attempt_one(payload: Payload) -> dict[str, object]:
        async with places:
            return await attempt(around, payload, run)

    together = [payload for payload in chosen if not payload.alone]
    results = await asyncio.gather(*map(attempt_one, together))
    found = {payload.name: result for payload, result in zip(together, results, strict=True)}
    for payload in chosen:
        if payload.alone:
            found[payload.name] = await attempt(around, payload, run)
    return found


async def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("where", choices=["plain", "python", "session", "shell"])
    parser.add_argument("--tier", default="full")
    parser.add_argument("--only", nargs="*", default=[], help="names of payloads, such as frames/error_group")
    arguments = parser.parse_args()
    chosen = [
        payload
        for payload in payloads()
        if (payload.is_shell == (arguments.where == "shell") or arguments.where == "plain")
        and (payload.name in arguments.only or not arguments.only)
    ]
    with world() as around:
        if arguments.where == "plain":
            found = await attempt_all(around, chosen, run_plain)
        else:
            from escaping.contained import opened

            async with opened(arguments.where, arguments.tier) as run:
                found = await attempt_all(around, chosen, run)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    # Begun anew with the secret, so that what the kernel shows of this process's beginning holds it too.
    if SECRET_NAME not in os.environ:
        os.environ[SECRET_NAME] = "secret" + secrets.token_hex(12)
        os.execv(sys.executable, [sys.executable, "-m", "escaping.corpus", *sys.argv[1:]])
    asyncio.run(main())
