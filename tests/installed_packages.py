"""Packages of npm and PyPI that slow tests try ferrule on, in environments of their own that later runs use again.

They lie under `~/.cache/ferrule-tests`, or where FERRULE_TEST_CACHE says. What can't be installed skips the test.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("FERRULE_TEST_CACHE") or Path.home() / ".cache" / "ferrule-tests")
NODE = "22.23.3"
"""The version of Node that is installed from npm where the machine's own is older."""


def install_from_npm(*packages: str) -> Path:
    """Install packages, each with its version; returns the folder `node_modules`."""
    if shutil.which("npm") is None:
        pytest.skip("npm is missing")

    def build(folder: Path) -> None:
        # Nothing but files: no package runs a program of its own while it is installed.
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
        _install(["npm", "install", *options, *packages], f"npm can't install {packages[0]}")

    return _install_once("npm", packages, build) / "node_modules"


def install_from_pypi(*requirements: str) -> Path:
    """Install pinned requirements into an environment; returns the folder of its programs."""

    def build(folder: Path) -> None:
        # `venv.create` of a Python in an environment would refer to that environment.
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True, timeout=300)
        command = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", *requirements]
        _install(command, f"pip can't install {requirements[0]}")

    return _install_once("pypi", (*requirements, sys.version), build) / "bin"


def find_node(least: int) -> Path:
    """A Node of at least this major version: the machine's, or one from npm."""
    if own := shutil.which("node"):
        version = subprocess.run([own, "--version"], capture_output=True, text=True, check=True, timeout=300).stdout
        if int(version.removeprefix("v").partition(".")[0]) >= least:
            return Path(own)
    package = f"node-linux-{'arm64' if platform.machine() in ('aarch64', 'arm64') else 'x64'}"
    return install_from_npm(f"{package}@{NODE}") / package / "bin" / "node"


def _install_once(kind: str, packages: tuple[str, ...], build: Callable[[Path], None]) -> Path:
    """The folder of these packages, installed by whoever needs them first; a file says that nothing is missing."""
    folder = CACHE / f"{kind}-{hashlib.sha256(repr(packages).encode()).hexdigest()[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            build(folder)
            (folder / "complete").write_text("\n".join(packages))
    return folder


def _install(command: list[str], problem: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(problem)
    if done.returncode:
        pytest.skip(problem)
