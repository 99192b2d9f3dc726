"""Probes shared by the canaries of Linux and macOS."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

__all__ = ["read_secrets", "succeeds", "use_own_folder"]

_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)


def use_own_folder(_: object) -> str | None:
    """write, read and remove a file of its own: containment that stops this is broken, too"""
    own = Path("canary")
    try:
        own.write_text("x", encoding="utf-8")
        own.read_text(encoding="utf-8")
        own.unlink()
    except OSError as error:
        return f"nothing: {error}"
    return None


def read_secrets(_: object) -> str | None:
    """find what looks like a secret in the environment"""
    return next((name for name in os.environ if _SECRET.search(name)), None)


def succeeds(attempt: Callable[..., object], *arguments: object) -> bool:
    """Whether a call returns without an OSError."""
    try:
        attempt(*arguments)
    except OSError:
        return False
    return True
