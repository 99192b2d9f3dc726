"""`@path` in a question: attaches the file, and completes its name, within what the file tools may read."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias

from ferrule._util.background import run_synchronously
from ferrule.coding.files.images import find_image
from ferrule.coding.files.reading import LoadedFile, explain_errors, load_file
from ferrule.coding.files.text_files import show_bad_bytes, split_lines
from ferrule.coding.search.listing import list_files_below
from ferrule.conversation import Image, Text
from ferrule.errors import SandboxInputError, SandboxUnavailable, SettingsError, ToolFailed
from ferrule.media import frame_text

if TYPE_CHECKING:
    from ferrule.coding.workspace import Workspace

Attachment: TypeAlias = Text | Image
_MENTION = re.compile(r"""(?:^|(?<=[\s(]))@(?:"([^"\n]+)"|([^\s"]\S*))""")
_LIKE_A_PATH = re.compile(r"[/ ]|\.\w+$")
_ALIKE = 0.75
_TRAILING = ".,;:!?)\"'"
_LONGEST = 50_000
"""The most characters of one file; the model can read the rest."""
_MOST_FILES = 20
_FRESH = 10.0
"""How long the list of names is used, in seconds."""


def attach_files(
    question: str, workspace: Workspace, list_names: Callable[[], Sequence[str]] = list
) -> tuple[list[Attachment], list[str]]:
    """Load the files that a question names as `@path` or `@"path"`; returns them, and notices of those not found.

    A word that names no file stays a word of the question. `list_names` lists what could have been meant. Raises
    `SettingsError` for a file that can't be attached: hidden, binary, or one of too many.
    """
    mentions = [_find_mention(found, workspace) for found in _MENTION.finditer(question)]
    paths = dict.fromkeys(path for path, is_file in mentions if is_file)
    if len(paths) > _MOST_FILES:
        raise SettingsError(f"the question attaches {len(paths)} files; {_MOST_FILES} are allowed")
    missing = dict.fromkeys(path for path, is_file in mentions if path and not is_file)
    notices = [_describe_missing(path, workspace, list_names) for path in missing]
    return [load_attachment(path, workspace) for path in paths], [notice for notice in notices if notice]


def _find_mention(found: re.Match[str], workspace: Workspace) -> tuple[str, bool]:
    """The path that is meant, and whether it is that of a file: also without punctuation at its end."""
    if found[1] is not None:
        return found[1], _is_file(found[1], workspace)
    shortened = found[2].rstrip(_TRAILING)
    return next(((path, True) for path in (found[2], shortened) if _is_file(path, workspace)), (shortened, False))


def _find_real(path: str, workspace: Workspace) -> str:
    return os.path.join(workspace.folder, os.path.expanduser(path))  # noqa: PTH111, PTH118 - a string


def _is_file(path: str, workspace: Workspace) -> bool:
    return bool(path) and os.path.isfile(_find_real(path, workspace))  # noqa: PTH113


def _describe_missing(path: str, workspace: Workspace, list_names: Callable[[], Sequence[str]]) -> str:
    """Say that nothing was attached, and what may have been meant; empty for what is only a word (`@property`)."""
    if os.path.isdir(_find_real(path, workspace)):  # noqa: PTH112
        return f"@{path} is a folder: nothing of it was attached; name its files"
    near = _find_near(path, list_names())
    if near:
        return f"@{path}: no such file, so nothing was attached; did you mean {quote_mention(near)}?"
    return f"@{path}: no such file, so nothing was attached" if _LIKE_A_PATH.search(path) else ""


def _find_near(path: str, names: Sequence[str]) -> str | None:
    """The file whose path, or else whose name, is nearest."""
    near = get_close_matches(path, names, 1, _ALIKE)
    if near:
        return near[0]
    by_name = {name.rpartition("/")[2]: name for name in reversed(names)}
    close = get_close_matches(path.rpartition("/")[2], by_name, 1, _ALIKE)
    return by_name[close[0]] if close else None


def quote_mention(path: str) -> str:
    """How a question names a file."""
    return f'@"{path}"' if " " in path else f"@{path}"


def load_attachment(path: str, workspace: Workspace) -> Attachment:
    """Load one file: its text, cut if it is long, or its image. Raises `SettingsError`."""
    try:
        with explain_errors("attaching", path):
            loaded = load_file(workspace, path)
    except ToolFailed as error:
        raise SettingsError(f"@{path}: {error}") from error
    try:
        image = find_image(f"@{path}", loaded.data)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    if image is not None:
        return Image(loaded.data, image.media_type)
    if loaded.text is None:
        raise SettingsError(f"@{path}: {loaded.kind}, which can't be attached; only text and images can")
    note = f"\n[{loaded.path}: {loaded.text.description}]" if loaded.text.description else ""
    return Text(f"\n\n{frame_text(loaded.path, _cut(loaded, workspace))}{note}")


def _cut(loaded: LoadedFile, workspace: Workspace) -> str:
    """Cut a long text; a whole one is known to the model from now on, and it is told if the file changes."""
    assert loaded.text is not None
    text = loaded.text.text
    if len(text) <= _LONGEST:
        workspace.files.remember(loaded.real, loaded.digest, loaded.settled)
        return show_bad_bytes(text)
    kept = text[:_LONGEST].rpartition("\n")[0] or text[:_LONGEST]
    lines, of = len(split_lines(kept)), len(split_lines(text))
    return f"{show_bad_bytes(kept)}\n[cut after line {lines:,} of {of:,}: read the rest with read_file]"


class FileNames:
    """The names of the files that can be attached, for completion; listed anew when they are old."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._names: list[str] | None = None
        self._listed = float("-inf")
        self._lock = threading.Lock()

    def list_names(self) -> list[str]:
        """List them, relative to the workspace. Called in a thread without an event loop.

        Only the first call waits for them: a list that is old is used until the next one is complete.
        """
        if self._names is None:
            self._refresh()
        elif time.monotonic() - self._listed > _FRESH:
            threading.Thread(target=self._refresh, name="file-names", daemon=True).start()
        return self._names or []

    def _refresh(self) -> None:
        with self._lock:
            if time.monotonic() - self._listed > _FRESH:
                self._names = self._find()
                self._listed = time.monotonic()

    def _find(self) -> list[str]:
        folder = str(self._workspace.folder)
        try:
            snapshot = self._workspace.access.take_snapshot()
            listing = run_synchronously(list_files_below(folder, folder, snapshot))
        except (OSError, SandboxInputError, SandboxUnavailable):
            return []
        names = (path[len(folder) + 1 :] for path in listing.paths)
        # One with a control character would be shown as another; one with a quote would end at it.
        return [name for name in names if name.isprintable() and '"' not in name]
