"""The workspace of the coding agent: its folders, what may be done in them, and what the model knows of them.

All tools of one agent share one `Workspace`. Before a tool changes anything it awaits `before_write` or
`before_command`, so that a checkpoint exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ferrule._util.async_closing import AsyncClosing
from ferrule.builtin_tools.shell_jobs import ShellJobs
from ferrule.coding.files.records import FileRecords
from ferrule.sandbox.file_access import FileAccess

if TYPE_CHECKING:
    from ferrule.coding.checkpoints.undo_news import UndoNews
    from ferrule.sandbox.shell import ShellSandbox

__all__ = ["TurnCheckpoints", "Workspace"]


class TurnCheckpoints(Protocol):
    """What keeps the state before a turn, so that it can be undone."""

    async def before_write(self, paths: Sequence[Path]) -> None:
        """Keep the content of files that are about to be written, created or deleted. Real paths."""

    async def before_command(self) -> None:
        """Keep what a shell command might change."""

    def take_undo_news(self) -> list[UndoNews]:
        """What the user undid since the model was last told. Called in a thread."""


class Workspace(AsyncClosing):
    """A folder, and others added to it, with everything that the tools of one agent share."""

    def __init__(
        self,
        folder: Path | str,
        added: Sequence[Path | str] = (),
        *,
        sandbox: ShellSandbox | None = None,
        checkpoints: TurnCheckpoints | None = None,
        visible: Sequence[str] = (),
    ) -> None:
        """`sandbox` runs the commands; its lists of hidden, visible and protected paths apply to files too.

        None: one with the default settings, which `aclose` closes, and in which files with these names and paths are
        `visible` that would be hidden otherwise, such as `.env`. Raises `SandboxInputError` for a folder that can't
        be used.
        """
        if sandbox is None:
            self.access = FileAccess(folder, added, visible=visible)
        else:
            self.access = FileAccess(
                folder,
                added,
                sandbox.hidden,
                sandbox.protected,
                visible=(*sandbox.visible, *visible),
                open_installation=sandbox.open_installation,
            )
        self._visible = tuple(visible)
        self.files = FileRecords(self.access)
        self.checkpoints = checkpoints
        self.jobs = ShellJobs()
        """The commands that run in the background."""
        self._sandbox = sandbox
        self._closes_sandbox = sandbox is None

    @property
    def folder(self) -> Path:
        """The real path of the workspace."""
        return self.access.workspace

    @property
    def added(self) -> tuple[Path, ...]:
        """The real paths of the added folders."""
        return self.access.folders[1:]

    @property
    def sandbox(self) -> ShellSandbox:
        """What runs the commands of this workspace. Made when first used, which starts nothing."""
        if self._sandbox is None:
            from ferrule.sandbox.shell import ShellSandbox

            # A proxy without a host says which ones a command needs.
            self._sandbox = ShellSandbox(self.folder, added=self.added, network=[], visible=self._visible)
        return self._sandbox

    async def before_write(self, paths: Sequence[Path]) -> None:
        """Called before a tool writes, creates or deletes files at these real paths."""
        if self.checkpoints is not None:
            await self.checkpoints.before_write(paths)

    async def before_command(self) -> None:
        """Called before a tool runs a command that may change files."""
        if self.checkpoints is not None:
            await self.checkpoints.before_command()

    def take_announcements(self) -> list[str]:
        """What the user undid, which files changed since the model read them, and which jobs ended.

        See `announcements`.
        """
        undone = [] if self.checkpoints is None else self.checkpoints.take_undo_news()
        restored = {str(self.folder / path) for news in undone for path in news.paths}
        texts = [news.text for news in undone]
        return [*texts, *self.files.take_announcements(restored), *self.jobs.take_announcements()]

    async def aclose(self) -> None:
        """Stop the background jobs, and close the sandbox if it was made here. Can be called again."""
        await self.jobs.aclose()
        if self._closes_sandbox and self._sandbox is not None:
            await self._sandbox.aclose()
