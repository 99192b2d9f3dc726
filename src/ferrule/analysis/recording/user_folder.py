"""Where recordings are that no file was named for: in the user's data folder, by the time and the question."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from ferrule._util.user_folders import find_data_folder
from ferrule.errors import SettingsError

_WORDS = 6
_ENDING = ".jsonl"


def find_recording_folder() -> Path:
    """The folder of the user's recordings, existing or not. Raises `RuntimeError` where there is no home."""
    return find_data_folder() / "analyses"


def make_recording_path(question: str) -> Path:
    """The path of a new recording, whose folder is made. Raises `OSError` and `RuntimeError`."""
    folder = find_recording_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = "-".join(re.findall(r"[a-z0-9]+", question.casefold())[:_WORDS]) or "analysis"
    # The process's id: two analyses may begin in one second.
    return folder / f"{time.strftime('%Y-%m-%d-%H%M%S')}-{os.getpid()}-{words[:60]}{_ENDING}"


def find_last_recording() -> Path:
    """The newest recording of the user. Raises `SettingsError` if there is none."""
    try:
        folder = find_recording_folder()
    except RuntimeError as error:
        raise SettingsError(f"there is no folder of recordings: {error}; set HOME, or name a recording") from error
    found = sorted(folder.glob(f"*{_ENDING}"), key=lambda path: path.stat().st_mtime) if folder.is_dir() else []
    if not found:
        raise SettingsError(f"no analysis is recorded in {folder} yet; name a recording")
    return found[-1]
