"""Whether a path lies in the workspace: the folder in which a policy lets a model work without asking.

Names alone don't tell. `notes/../../etc` climbs out, a link leads out, and whoever reads a path may decode it first. So
every plain form of a path counts, links are followed in each, and one that leads out is enough. Letter case and
Unicode forms are compared as they are written: where a file system takes two of them for one, the path counts as
outside, and somebody is asked.
"""

from __future__ import annotations

import os
from pathlib import Path

from ferrule.execution.rule_matching import expand_forms


def find_path_outside(target: str, workspace: Path) -> str | None:
    """The real path of `target`, or of what it may be taken for, that isn't in `workspace`; None where all are.

    A relative path is taken from the current folder, as the file functions of Python take it. What is no path (an
    empty text, an address, one with a NUL) is outside.
    """
    if not target or "\0" in target or "://" in target:
        return target or "a path that isn't given"
    root = os.path.realpath(workspace)
    for path in dict.fromkeys((target, os.path.expanduser(target), *expand_forms(target))):  # noqa: PTH111 - text stays text
        real = os.path.realpath(path)
        if os.path.commonpath((root, real)) != root:
            return real
    return None
