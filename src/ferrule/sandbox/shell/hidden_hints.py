"""Says in a command's result that a file which it names is hidden from it, and how the user can show it."""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH119

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from ferrule._util.terminal_text import escape_line
from ferrule.errors import choose_advice
from ferrule.sandbox.shell.access_plan import AccessPlan

__all__ = ["describe_hidden_files", "find_named_files"]

_CHANGE: Final = re.compile(r"[ \t]*?(?:(?:modified|typechange|deleted|renamed|new file):|[ MADTRCU]{1,2}?[ \t])")
"""How git, and what prints like it, begins the line of a change."""
_MAX_FILES: Final = 1000
_MAX_NAMED: Final = 5


def find_named_files(hidden: Sequence[str], output: str, *, failed: bool) -> list[str]:
    """The hidden files that the output of a command names: of one that `failed` anywhere, else as changed."""
    return [path for path in hidden[:_MAX_FILES] if _is_named(os.path.basename(path), output, failed=failed)]


def _is_named(name: str, output: str, *, failed: bool) -> bool:
    # Each search takes time linear in the output, of which a megabyte may be in one line.
    if name not in output:
        return False
    whole = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
    if failed:
        return whole.search(output) is not None
    changes = ((line, _CHANGE.match(line)) for line in output.split("\n") if name in line)
    return any(start is not None and whole.search(line, start.end()) for line, start in changes)


def describe_hidden_files(paths: Sequence[str], plan: AccessPlan) -> str:
    """What a model should know of hidden files: that nothing else is wrong with them, and who can show them."""
    shown = [escape_line(os.path.relpath(path, plan.workspace)) for path in paths[:_MAX_NAMED]]
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    are, them = ("are", "them") if len(paths) > 1 else ("is", "it")
    has_copies = any(path in plan.copies for path in paths)
    seen = f"commands see what git has staged or committed of {them}" if has_copies else f"no command can open {them}"
    setting = choose_advice(
        f"ShellSandbox(visible=[{shown[0]!r}])", f'visible = ["{shown[0]}"] under [code] in ferrule.toml'
    )
    return (
        f"{', '.join(shown)}{more} {are} hidden, since secrets may be there: {seen}. "
        f"The user can show {them} by {setting}"
    )
