"""A workspace that holds what ferrule runs from: an environment, in which programs that use ferrule are started."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
BEGIN = """
import asyncio, os, subprocess, sys
from pathlib import Path
from ferrule.errors import FerruleError, SandboxInputError, SandboxUnavailable
from ferrule.sandbox.python import PythonSandbox
from ferrule.sandbox.shell import ShellSandbox

async def say(command, workspace=".", writable=(), **settings):
    async with ShellSandbox(workspace, **settings) as shell:
        done = await shell.run(command, writable=writable)
        return done

async def python(code="1 + 1"):
    async with PythonSandbox(packages=()) as sandbox:
        return (await sandbox.run(code)).value
"""


def make_environment(place: Path, *paths: Path) -> Path:
    """An environment of this interpreter that finds ferrule where it is, what that needs, and `paths`."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    packages = next(place.glob("lib/python*/site-packages"))
    found = (*paths, SOURCE, Path(sysconfig.get_path("purelib")))
    # As what is installed for editing may begin: by a module of its own.
    (packages / "found.pth").write_text("".join(f"{path}\n" for path in found) + "import finder\n")
    (packages / "finder.py").touch()
    return packages


def run(
    workspace: Path, program: str, *, environment: Path | None = None, python: Path | None = None, **variables: str
) -> str:
    """What a program prints that runs in the workspace, by the environment in it, another one, or any interpreter."""
    python = python or (environment or workspace / ".venv") / "bin/python"
    done = subprocess.run(
        [str(python), "-c", BEGIN + textwrap.dedent(program)],
        cwd=workspace,
        env=os.environ | {"PYTHONSAFEPATH": "1"} | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout + done.stderr


PLANT = "echo 'import os; os.mkdir(\"{canary}\")' >"
PROGRAM = "printf '#!/bin/sh\\nmkdir {canary}\\n' >{env}/bin/python && chmod +x {env}/bin/python"
EXCHANGE = (
    "cp -a {env}/. other && "
    "for p in other/lib/python*/site-packages; do "
    + PLANT
    + "$p/evil.pth; done; "
    + "{python} -I -S -c \"import ctypes; ctypes.CDLL(None).renameat2(-100, b'{env}', -100, b'other', 2)\""
)
ATTACKS = {
    "a .pth file": "for p in {env}/lib/python*/site-packages; do " + PLANT + "$p/evil.pth; done",
    "a module": "for p in {env}/lib/python*/site-packages; do " + PLANT + "$p/finder.py; done",
    "through a link": "ln -s $PWD/{env}/lib way; for p in way/python*/site-packages; do " + PLANT + "$p/evil.pth; done",
    "through /proc": "for p in /proc/self/root$PWD/{env}/lib/python*/site-packages; do " + PLANT + "$p/evil.pth; done",
    "through a hard link": "ln {env}/lib/python*/site-packages/found.pth way && " + PLANT + ">way",
    "another program": "rm {env}/bin/python; " + PROGRAM,
    "another environment": "rm -rf {env}; mkdir -p {env}/bin && " + PROGRAM,
    "a renamed one": "mv {env} old; mkdir -p {env}/bin && " + PROGRAM,
    "a renamed folder around it": "mv {top} old; mkdir -p {real}/bin && " + PROGRAM,
    "an exchanged one": EXCHANGE,
}
"""What makes the next start of the environment's interpreter run something, in a workspace where `env` is."""
