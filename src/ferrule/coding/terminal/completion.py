"""Completes commands after a slash, and the names of files after `@`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

_FILE = re.compile(r"""(?:^|\s)@(?:"([^"\n]*)|([^\s"]*))$""")
_MOST = 200
"""The most names that are offered."""


class PromptCompleter(Completer):
    """Both, by what stands before the cursor.

    `list_commands` returns usages with what they do, `list_files` the paths of files relative to the workspace.
    """

    def __init__(
        self, list_commands: Callable[[], Sequence[tuple[str, str]]], list_files: Callable[[], Sequence[str]]
    ) -> None:
        self._list_commands = list_commands
        self._list_files = list_files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002 - as it is called
        """Yield completions of the word before the cursor."""
        before = document.text_before_cursor
        if before.startswith("/") and " " not in before and "\n" not in before:
            for usage, about in self._list_commands():
                name = usage.split()[0]
                if name.startswith(before):
                    yield Completion(name, -len(before), display=usage, display_meta=about)
            return
        found = _FILE.search(before)
        if found is not None:
            typed = found[2] if found[1] is None else found[1]
            for path in rank_paths(self._list_files(), typed):
                is_quoted = found[1] is not None or " " in path
                start = -len(typed) - (found[1] is not None)
                yield Completion(f'"{path}" ' if is_quoted else f"{path} ", start, display=path)


def rank_paths(paths: Iterable[str], typed: str) -> list[str]:
    """Return the paths that contain what was typed: those whose name begins with it first, the shortest first."""
    wanted = typed.casefold()
    ranked = []
    for path in paths:
        folded = path.casefold()
        if wanted in folded:
            name = folded.rpartition("/")[2]
            ranked.append((not folded.startswith(wanted), not name.startswith(wanted), len(path), path))
    ranked.sort()
    return [path for *_, path in ranked[:_MOST]]
