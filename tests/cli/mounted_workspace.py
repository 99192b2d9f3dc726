"""Runs a command on a workspace whose file system can't be written, or is full: a program for `unshare -rm`.

    python mounted_workspace.py read-only|full WORKSPACE RESULT COMMAND...

What the workspace has in the end is copied to RESULT, since nobody else sees the mount.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_SIZE = "64k"


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def main(kind: str, workspace: str, result: str, *command: str) -> int:
    if kind == "read-only":
        mount("--bind", workspace, workspace)
        mount("-o", "remount,bind,ro", workspace)
    else:
        kept = Path(result).with_name("kept")
        shutil.copytree(workspace, kept)
        mount("-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", workspace)
        shutil.copytree(kept, workspace, dirs_exist_ok=True)
    done = subprocess.run(command, cwd=workspace, check=False)
    shutil.copytree(workspace, result)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
