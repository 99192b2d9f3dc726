"""Starts a zygote when it is first needed, and again when it has ended. On the background loop."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from ferrule._util.background import run_in_thread
from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.containment import RunLimits
from ferrule.sandbox.doctor import detect_layers
from ferrule.sandbox.installation import refuse_if_opened
from ferrule.sandbox.macos.sbpl import SANDBOX_EXEC
from ferrule.sandbox.mounted_files import MountedFile
from ferrule.sandbox.python.parent.child_process import ChildNotStarted, ChildProcess, ZygoteLost
from ferrule.sandbox.python.parent.lineage import SessionLineage
from ferrule.sandbox.python.parent.process_handle import ProcessHandle
from ferrule.sandbox.python.parent.seatbelt import NO_SESSIONS, SeatbeltStarter
from ferrule.sandbox.python.parent.session_process import SessionProcess
from ferrule.sandbox.python.parent.zygote_process import ZygoteProcess, ZygoteReport, find_package_paths
from ferrule.sandbox.temporary_folders import TemporaryFolder
from ferrule.sandbox.tiers import Tier
from ferrule.sandbox.visible_paths import find_python_paths

_REMOVAL_SECONDS: Final = 5.0
"""How long killed runs may still write to the folder."""


@dataclass(frozen=True, slots=True)
class ZygoteSettings:
    """The settings of every zygote of a sandbox."""

    packages: tuple[str, ...]
    readable: tuple[str, ...]
    tier: Tier | None
    max_output: int
    files: tuple[MountedFile, ...] = ()
    seatbelt: Path = SANDBOX_EXEC
    """macOS's `sandbox-exec`."""


class ZygotePool:
    """A zygote, and one contained child that is already waiting for code with the usual limits."""

    def __init__(self, settings: ZygoteSettings, usual: RunLimits) -> None:
        self._settings = settings
        self._usual = usual
        self._starting = asyncio.Lock()
        self._zygote: ZygoteProcess | SeatbeltStarter | None = None
        self._spare: asyncio.Task[ChildProcess] | None = None
        self._folder: TemporaryFolder | None = None
        self._is_closed = False
        self.ready: ZygoteReport | None = None
        self.tier: Tier | None = None

    async def get_zygote(self) -> ZygoteProcess | SeatbeltStarter:
        """Return the zygote, starting it if needed. Raises `SandboxUnavailable` with the reason if it can't start."""
        async with self._starting:
            if self._is_closed:
                raise SandboxUnavailable("this sandbox is closed: make a new one")
            if self._zygote is None or self._zygote.is_lost:
                await self._remove_folder()
                self._zygote = await self._start_zygote()
            return self._zygote

    @property
    def _is_seatbelt(self) -> bool:
        tier = self._settings.tier
        return tier is Tier.SEATBELT or (tier is None and sys.platform == "darwin")

    async def _start_zygote(self) -> ZygoteProcess | SeatbeltStarter:
        refuse_if_opened()
        try:
            zygote = SeatbeltStarter(self._settings.seatbelt) if self._is_seatbelt else ZygoteProcess()
        except OSError as error:
            raise SandboxUnavailable(f"a zygote can't be started: {error}") from error
        try:
            self.tier = tier = await self._choose_tier()
            self.ready = await zygote.prepare(self._make_settings(tier))
        except ZygoteLost as lost:
            await self._remove_folder()
            raise SandboxUnavailable(f"the sandbox can't be started in tier {self.tier}: {lost}") from None
        except BaseException:
            zygote.close()
            await self._remove_folder()
            raise
        return zygote

    async def _choose_tier(self) -> Tier:
        """Return the settings' tier, or this machine's best. Raises `SandboxUnavailable` if it has none."""
        if self._settings.tier is not None:
            return self._settings.tier
        found = await run_in_thread(detect_layers)
        if found.tier is Tier.NONE:
            raise SandboxUnavailable(f"this machine can't contain anything: {'; '.join(found.missing)}")
        return found.tier

    def _make_settings(self, tier: Tier) -> dict[str, Any]:
        if tier is not Tier.FULL:
            self._folder = TemporaryFolder("ferrule-sandbox-")
        return {
            "tier": tier.value,
            "folder": self._folder.path if self._folder is not None else None,
            "prefixes": (sys.prefix, sys.exec_prefix),
            "path": find_package_paths(self._settings.readable),
            "readable": [str(path) for path in find_python_paths(map(Path, self._settings.readable)).readable],
            "packages": self._settings.packages,
            "files": self._settings.files,
        }

    async def acquire_child(self, limits: RunLimits) -> ChildProcess:
        """Return a contained child that waits for code. Raises `SandboxUnavailable`; nothing has run then."""
        if limits != self._usual:
            child = await self._make_child(limits)
            child.begin()
            return child
        child = await self._take_spare() or await self._make_child(limits)
        child.begin()
        if self._spare is None and not self._is_closed:
            self._spare = asyncio.create_task(self._make_child(limits))
        return child

    async def _take_spare(self) -> ChildProcess | None:
        """Return the child that was started in advance, if it is still alive."""
        waiting, self._spare = self._spare, None
        if waiting is None:
            return None
        try:
            child = await waiting
        except SandboxUnavailable:
            return None
        except asyncio.CancelledError:
            # It may have become ready at this moment, and nothing else refers to it.
            waiting.add_done_callback(_close_if_made)
            raise
        if not child.ended.done():
            return child
        child.close()
        return None

    async def _make_child(self, limits: RunLimits) -> ChildProcess:
        why = ""
        # A zygote that was killed meanwhile hasn't run any of this, so the next one gets the same request.
        for _ in range(3):
            zygote = await self.get_zygote()
            try:
                return await self._spawn(zygote, limits)
            except ZygoteLost as lost:
                why = str(lost)
            except TimeoutError:
                why = "the zygote didn't answer"
                zygote.close()
            except (ChildNotStarted, OSError) as error:
                raise SandboxUnavailable(f"a run can't be contained: {error}") from None
        raise SandboxUnavailable(f"the sandbox's zygote ended three times in a row: {why}")

    async def _spawn(self, zygote: ZygoteProcess | SeatbeltStarter, limits: RunLimits) -> ChildProcess:
        child = zygote.spawn(asdict(limits), self._settings.max_output)
        try:
            await child.wait_until_confined()
        except BaseException:
            child.close()
            raise
        return child

    async def start_session(self, limits: RunLimits) -> SessionProcess:
        """Start the process of a new session. Raises `SandboxUnavailable`."""
        if self._is_seatbelt:
            raise SandboxUnavailable(NO_SESSIONS)
        zygote = await self.get_zygote()
        assert isinstance(zygote, ZygoteProcess)
        with ExitStack() as opened:
            listener_socket = other = None
            if self.tier is Tier.FULL:
                listener_socket, other = socket.socketpair()
                opened.callback(listener_socket.close)
            try:
                child = zygote.spawn(asdict(limits), self._settings.max_output, is_session=True, listener_socket=other)
            except (ZygoteLost, OSError) as error:
                raise SandboxUnavailable(f"a session can't be started: {error}") from None
            finally:
                if other is not None:
                    other.close()
            lineage = SessionLineage(child, listener_socket)
            opened.callback(lineage.leave)
            try:
                process = ProcessHandle(await lineage.wait_until_confined())
            except (ZygoteLost, ChildNotStarted, OSError) as error:
                raise SandboxUnavailable(f"a session can't be contained: {error}") from None
            session = SessionProcess(lineage, child.channel, child.output, process)
            opened.pop_all()
        child.output.overflow = session.kill
        process.stop()
        return session

    async def aclose(self) -> None:
        """End the zygote and every run. Can be called again."""
        self._is_closed = True
        if self._spare is not None:
            self._spare.cancel()
            with suppress(asyncio.CancelledError):
                if (child := await self._take_spare()) is not None:
                    child.close()
        if self._zygote is not None:
            self._zygote.close()
            await self._zygote.wait_until_gone()
        await self._remove_folder()

    async def _remove_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            with suppress(OSError):
                await run_in_thread(partial(folder.remove, _REMOVAL_SECONDS))


def _close_if_made(made: asyncio.Task[ChildProcess]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()
