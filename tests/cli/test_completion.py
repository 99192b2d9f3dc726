"""Completion in a shell: the scripts, what they complete, and that bash loads and runs one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from terminals import assert_refused, environment, ferrule

from ferrule.models.providers import PROVIDERS


def completed(*words: str) -> list[str]:
    """What bash is told about the last of these words."""
    line, at = " ".join(("ferrule", *words)), str(len(words))
    done = ferrule(_FERRULE_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=at)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str) -> None:
    done = ferrule("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_FERRULE_COMPLETE=complete_{shell}" in done.stdout
    assert_refused(ferrule("completion", "tcsh"), "no completion for 'tcsh'", "bash, zsh, fish")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("cha",), ["chat"]),
        (("ask", "--no-t"), ["--no-tools"]),
        (("ask", "-m", "open"), ["openai:", "openai-responses:", "openrouter:"]),
        (("chat", "--fallback", "e"), ["embedded", "echo"]),
        (("ask", "--mode", "herm"), ["hermes"]),
        (("parse", "--dialect", "herm"), ["hermes"]),
        (("render", "--dialect", "nanoc"), ["nanochat", "nanochat-tools"]),
        (("keys", "set", "groq"), ["groq"]),
        (("keys", "re"), ["remove"]),
        (("models", "gro"), ["groq"]),
    ],
)
def test_what_is_completed(words: tuple[str, ...], found: list[str]) -> None:
    assert completed(*words) == found


def test_every_provider_is_completed() -> None:
    assert {f"{name}:" for name in PROVIDERS} < set(completed("ask", "-m", ""))


def test_bash_completes(tmp_path: Path) -> None:
    """In a real bash, which loads the script and calls its function as on a Tab."""
    command = tmp_path / "ferrule"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m ferrule "$@"\n')
    command.chmod(0o755)
    script = (
        'eval "$(ferrule completion bash)"\nCOMP_WORDS=(ferrule ask --no-t)\nCOMP_CWORD=2\n'
        '_ferrule_completion ferrule\necho "${COMPREPLY[@]}"\n'
    )
    changed = environment()
    changed["PATH"] = f"{tmp_path}:{changed['PATH']}"
    done = subprocess.run(["bash", "-c", script], env=changed, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("--no-tools\n", "")


def test_it_installs_itself(tmp_path: Path) -> None:
    changes = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # the shell is named instead
    done = ferrule("--install-completion", "bash", **changes)
    assert done.returncode == 0, done
    assert "_FERRULE_COMPLETE=complete_bash" in (tmp_path / ".bash_completions" / "ferrule.sh").read_text()
    assert str(tmp_path / ".bash_completions" / "ferrule.sh") in (tmp_path / ".bashrc").read_text()
