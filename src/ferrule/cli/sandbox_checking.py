"""Python that is looked at and not run."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ferrule.cli.list_tools import print_json
from ferrule.cli.words import answer_words
from ferrule.errors import SettingsError
from ferrule.sandbox.checks import PROFILES, CheckProfile, Finding, check, explained


def check_file(file: str, checks: str, as_json: bool) -> int:
    """Print the findings; the exit status. Raises `SettingsError` for an unknown profile, `OSError` for no file."""
    findings = check(code_of(file), profile=profile_of(checks))
    if as_json:
        print_json([finding_json(finding) for finding in findings])
    elif findings:
        print(answer_words(explained(findings)))
    return int(any(finding.refuses or finding.rule == "syntax" for finding in findings))


def code_of(file: str) -> str:
    """The code in a file, or on standard input for `-`. Raises `OSError`, or `UnicodeDecodeError`."""
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return data.decode("utf-8")


def profile_of(name: str) -> CheckProfile:
    """A profile of the checks. Raises `SettingsError` for a name that is none."""
    if name not in PROFILES:
        raise SettingsError(f"--checks is one of {', '.join(PROFILES)}, not {name!r}")
    return name


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding for programs."""
    return asdict(finding)
