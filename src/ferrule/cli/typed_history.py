"""The lines typed in earlier chats, which the arrow keys bring back: a readline file that only its owner can read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_MOST_LINES = 1_000


def find_history_path() -> Path:
    """The path of the file, in the user's state folder."""
    state = Path(os.environ.get("XDG_STATE_HOME") or "")
    # The XDG specification says to ignore relative paths.
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / "ferrule" / "chat_history"


class TypedHistory:
    """Loads the lines of earlier chats, and keeps each new one. A chat works the same where the file can't be used."""

    def __init__(self, readline: Any) -> None:
        self._readline = readline
        self._path: Path | None = None
        # Not every build of readline can append.
        if not hasattr(readline, "append_history_file"):
            return
        try:
            path = find_history_path()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            readline.set_history_length(_MOST_LINES)
            readline.read_history_file(path)
        except (OSError, RuntimeError):  # no rights, or no home
            return
        self._path = path

    def keep_last(self) -> None:
        """Add the line typed last to the file."""
        if self._path is None:
            return
        try:
            self._readline.append_history_file(1, self._path)
        except OSError:
            self._path = None
