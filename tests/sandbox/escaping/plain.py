"""Runs a payload in a plain subprocess, to show that it hits its canary there."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from pathlib import Path

from escaping.field import Field
from escaping.naive_worker import BEGUN, SEPARATOR
from escaping.outcome import Outcome

HERE = Path(__file__).parent
LONGEST = 60.0
# Seconds that a process gets to end after it was asked to.
POLITE = 0.3
# Seconds after which the parent that trusts counts as waiting for ever: loading pandas may take some on a busy machine.
DECODING = 12.0
# What of these comes back is decoded and collected by a parent that trusts.
DECODED = {"decoding", "lies", "left behind", "output floods"}


async def run_plain(field: Field) -> Outcome:
    """Run one payload as the current user, with nothing between it and the machine."""
    payload = field.payload
    # Files and not pipes: what a payload leaves running may keep its end of a pipe open for ever.
    files = {name: (field.top / name).open("w+b") for name in ("stdout", "stderr", "answer")}
    command = _worker(field, files["answer"].fileno())
    if payload.is_shell:
        command = ["sh", "-c", field.shell_prelude() + payload.code]
    process = await _started(command, field, files)
    if payload.seconds and not payload.is_shell:
        await _begun(process, field.workspace / BEGUN)
    outcome = Outcome(hits=await _ended(process, payload.seconds))
    outcome.text = b"".join(map(_content, files.values()))
    outcome.text, _, outcome.next_text = outcome.text.partition(SEPARATOR.encode())
    if payload.family in DECODED:
        await _decode(field, outcome)
    return outcome


def _worker(field: Field, writing: int) -> list[str]:
    texts = [field.payload.code, *([field.payload.next_code] if field.payload.next_code else [])]
    paths = [field.top / f"payload{number}.py" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(field.python_prelude() + text)
    return [sys.executable, str(HERE / "naive_worker.py"), str(writing), *map(str, paths)]


async def _started(command, field, files) -> asyncio.subprocess.Process:
    inherited = field.world.inherited[: None if field.payload.family == "descriptors" else -1]
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=field.workspace,
        stdin=subprocess.DEVNULL,
        pass_fds=(*inherited, files["answer"].fileno()),
        process_group=field.victim.pid if field.victim else 0,
        stdout=files["stdout"],
        stderr=files["stderr"],
    )


async def _begun(process: asyncio.subprocess.Process, mark: Path) -> None:
    """Wait until the worker is about to run its text: starting Python may take longer than the payload's limit."""
    while not mark.exists() and process.returncode is None:
        await asyncio.sleep(0.01)


async def _ended(process: asyncio.subprocess.Process, seconds: float | None) -> dict[str, str]:
    """Wait; where the payload is about time, end it the polite way and see whether it went."""
    try:
        await asyncio.wait_for(process.wait(), seconds or LONGEST)
        return {}
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
    try:
        await asyncio.wait_for(process.wait(), POLITE)
        return {}
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()
        return {"time": "did not end when asked to"}


async def _decode(field: Field, outcome: Outcome) -> None:
    command = [sys.executable, str(HERE / "naive_parent.py"), str(field.top / "answer"), str(field.workspace)]
    with (field.top / "decoded").open("w+b") as output:
        parent = await asyncio.create_subprocess_exec(*command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        try:
            if await asyncio.wait_for(parent.wait(), DECODING):
                outcome.hits["parent"] = f"the parent ended with {parent.returncode}"
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                parent.kill()
            await parent.wait()
            outcome.hits["parent"] = "the parent waited for ever"
        text = _content(output)
    outcome.text += text
    outcome.files = text.count(b"file /")


def _content(file) -> bytes:
    file.seek(0)
    content = file.read()
    file.close()
    return content
