"""Runs `docs/quickstart.md` word for word, in one shell, in a copy of this clone: `make quickstart`.

Only the standard library and git are needed. The copy has the files that git tracks or would add, and goes at the end.
Commands whose output the page shows must print it (`...` stands for any text); the others must succeed.
"""

from __future__ import annotations

import doctest
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from documented_blocks import ROOT, Block, read_blocks, split_commands

PAGE = ROOT / "docs" / "quickstart.md"
LIMIT = 600
"""The seconds that the page promises."""
_NOT_RUN = "it needs a key"
_END = "\x1fend of a command\x1f"


def copy_clone(folder: Path) -> None:
    """Copy what git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def write_script(blocks: list[Block]) -> tuple[str, list[tuple[str, str | None]]]:
    """The page as one shell script, and its commands with the output that is wanted of each, None for any."""
    lines: list[str] = []
    wanted: list[tuple[str, str | None]] = []
    for block in blocks:
        if block.kind == "file":
            folder = Path(block.note).parent
            lines.append(f"mkdir -p {shlex.quote(str(folder))} && printf %s {shlex.quote(block.text)} > {block.note}")
        elif block.language == "console" and block.note != _NOT_RUN:
            for command, output in split_commands(block):
                lines += [command, f"printf '\\n%s%s\\n' {shlex.quote(_END)} $?"]
                wanted.append((command, None if block.is_left_out else output))
    return "\n".join(lines) + "\n", wanted


def run(script: str, folder: Path) -> list[tuple[str, int]]:
    """Run a script, and return what each of its commands printed, on both streams, with its exit status."""
    # A variable of the caller must not stand in for what the page does.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FERRULE", "PYTHON", "VIRTUAL"))}
    environment = {
        **kept,
        "HOME": str(folder / ".home"),
        "NO_COLOR": "1",
        "COLUMNS": "120",
        "PYTHONIOENCODING": "utf-8",
    }
    environment |= {"PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))}
    done = subprocess.run(
        ["/bin/sh"],
        input=script,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    # Each piece but the last ends where a command ended, and begins with the status of the one before.
    first, *others = done.stdout.split("\n" + _END)
    pieces = [first, *(other.partition("\n")[2] for other in others)]
    statuses = [int(other.partition("\n")[0]) for other in others]
    return list(zip(pieces, statuses, strict=False))


def main() -> int:
    """Run the page; print each command, and return an exit status."""
    script, wanted = write_script(read_blocks(PAGE))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_clone(folder)
        (folder / ".home").mkdir()
        started = time.monotonic()
        results = run(script, folder)
        taken = time.monotonic() - started
    failed = len(wanted) - len(results)
    for (command, output), (printed, status) in zip(wanted, results, strict=False):
        same = output is None or doctest.OutputChecker().check_output(
            output.rstrip() + "\n", printed.rstrip() + "\n", doctest.ELLIPSIS | doctest.DONT_ACCEPT_BLANKLINE
        )
        is_right = same and (output is not None or status == 0)
        print(f"{'ok    ' if is_right else 'FAILED'} $ {command}")
        if not is_right:
            failed += 1
            print(f"exit status {status}; it printed\n{printed}\nand the page shows\n{output}")
    print(f"{len(wanted)} commands of {PAGE.relative_to(ROOT)}, {failed} failed, {taken:.0f} s of {LIMIT}")
    return 1 if failed or taken > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
