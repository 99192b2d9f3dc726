"""Runs git outside of the sandbox, on a repository of ferrule's own, with none of the user's or others' settings."""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH113, PTH117, PTH118
from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ferrule.sandbox.paths import is_within

__all__ = ["Git", "find_git", "make_repository"]

_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Git:
    """The git program, for one repository. Neither hooks nor settings of others apply; nothing asks for input."""

    program: str
    repository: str

    def run(
        self,
        *arguments: str,
        input: bytes = b"",  # noqa: A002 - as in `subprocess.run`
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        seconds: float = _SECONDS,
    ) -> bytes:
        """Run git in `folder`, by default the repository, and return its output.

        Raises `OSError` with what it printed if it fails, and if it takes longer than `seconds`.
        """
        try:
            done = subprocess.run(
                self._make_command(arguments),
                cwd=folder or self.repository,
                env={**self._make_environment(), **(environment or {})},
                input=input,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise OSError(f"git {arguments[0]} took more than {seconds:g} seconds") from error
        if done.returncode != 0:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
            raise OSError(f"git {arguments[0]} failed: {lines[-1]}")
        return done.stdout

    def start(
        self, *arguments: str, folder: str | None = None, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start git in `folder`, by default the repository, with pipes to its input and from its output."""
        return subprocess.Popen(
            self._make_command(arguments),
            cwd=folder or self.repository,
            env={**self._make_environment(), **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def _make_command(self, arguments: Sequence[str]) -> list[str]:
        settings = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null", "gc.auto=0")
        return [self.program, *(part for each in settings for part in ("-c", each)), *arguments]

    def _make_environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": "/nonexistent",
            "LC_ALL": "C.UTF-8",
            "GIT_DIR": self.repository,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_ALLOW_PROTOCOL": "none",
        }


def find_git(workspace: str) -> str | None:
    """Find git on PATH, but not in the workspace, where a command may have put a program of that name."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        program = os.path.realpath(os.path.join(folder, "git"))
        is_own = is_within(program, workspace) or is_within(os.path.realpath(folder), workspace)
        if os.path.isabs(folder) and not is_own and os.path.isfile(program) and os.access(program, os.X_OK):
            return os.path.join(folder, "git")
    return None


def make_repository(folder: str, settings: str = "") -> None:
    """Make an empty repository: what git needs to see, and nothing that it would run. Raises `OSError`."""
    for name in ("objects/pack", "objects/info", "refs/heads", "info"):
        Path(folder, name).mkdir(mode=0o700, parents=True, exist_ok=True)
    Path(folder, "HEAD").write_text("ref: refs/heads/none\n")
    version = 1 if settings else 0
    Path(folder, "config").write_text(f"[core]\n\trepositoryformatversion = {version}\n\tbare = false\n{settings}")
