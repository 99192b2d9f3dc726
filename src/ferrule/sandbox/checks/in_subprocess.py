"""Checks long code in a subprocess, which is killed after a time limit.

Python's parser and compiler take quadratic time for some sources (a thousand definitions of one name, a formatted
string of a thousand values, a module's name of a thousand parts), and hold the interpreter's lock meanwhile: for
200,000 characters of those, 2 to 20 s in which no other thread of the process ran. Up to `checks.AT_ONCE` characters it
is about 30 ms.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Final

from ferrule.sandbox.checks.advice import find_advice
from ferrule.sandbox.checks.findings import Finding, list_findings
from ferrule.sandbox.checks.strict import find_forbidden
from ferrule.sandbox.checks.syntax import parse_code
from ferrule.sandbox.installation import make_boot_program

_MEMORY: Final = 1 << 30
"""Bytes of address space; the syntax tree of the longest code takes a fifth of it."""


def check_in_subprocess(code: str, profile: str, seconds: float) -> tuple[Finding, ...]:
    """Return the findings; if there are none after `seconds`, one that says so, which refuses under `strict`."""
    program = make_boot_program(
        f"from ferrule.sandbox.checks.in_subprocess import serve_check; serve_check({int(seconds) + 1})"
    )
    # Isolated and without site-packages, since the code is only parsed.
    command = [sys.executable, "-I", "-S", "-B", "-c", program]
    request = json.dumps([code, profile]).encode()
    why = "can't be read with the memory that checks have"
    try:
        done = subprocess.run(command, input=request, capture_output=True, timeout=seconds, check=False)
        if done.returncode == 0:
            return tuple(Finding(**found) for found in json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        why = f"takes longer to read than the {seconds:g} s that checks have"
    except OSError as error:
        why = f"can't be read in a process of its own ({error.strerror})"
    message = f"{len(code):,} characters of code that {why}: not checked"
    return (Finding(1, 1, "length", "", message, "send data as inputs, not in the code", refuses=profile == "strict"),)


def check_here(code: str, profile: str) -> tuple[Finding, ...]:
    """Check code in this process, without a time limit."""
    tree = parse_code(code)
    if isinstance(tree, Finding):
        return (tree,)
    return list_findings(find_forbidden(tree) if profile == "strict" else find_advice(tree, code), code)


def serve_check(seconds: int) -> None:
    """Run in the subprocess: read code and profile from standard input, and write the findings."""
    with suppress(ImportError):
        import resource

        # The process ends even if its parent has ended.
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    code, profile = json.loads(sys.stdin.buffer.read())
    findings = [asdict(finding) for finding in check_here(code, profile)]
    sys.stdout.buffer.write(json.dumps(findings).encode())
    sys.stdout.buffer.flush()
    # Without freeing a large tree, which takes as long as building it.
    os._exit(0)
