"""The zygote that is there: started when it is first needed, and again when it has ended. On the background loop."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.contain import Limits
from ferrule.sandbox.folders import OwnFolder
from ferrule.sandbox.layers import layers
from ferrule.sandbox.loops import beside
from ferrule.sandbox.macos.sbpl import SANDBOX_EXEC
from ferrule.sandbox.python.launcher import Ready, Zygote, package_paths
from ferrule.sandbox.python.lineage import Lineage
from ferrule.sandbox.python.member import Member
from ferrule.sandbox.python.process import Child, Lost, Unstarted
from ferrule.sandbox.python.seatbelted import NO_SESSIONS, Seatbelt
from ferrule.sandbox.python.session_process import SessionProcess
from ferrule.sandbox.tier import Tier


@dataclass(frozen=True, slots=True)
class Settings:
    """What every zygote of a sandbox is started with."""

    packages: tuple[str, ...]
    readable: tuple[str, ...]
    tier: Tier | None
    max_output: int
    seatbelt: Path = SANDBOX_EXEC
    """macOS's `sandbox-exec`."""


class Pool:
    """A zygote, and one child of it that is contained already and waits for code with the usual limits."""

    def __init__(self, settings: Settings, usual: Limits) -> None:
        self._settings = settings
        self._usual = usual
        self._starting = asyncio.Lock()
        self._zygote: Zygote | Seatbelt | None = None
        self._spare: asyncio.Task[Child] | None = None
        self._folder: OwnFolder | None = None
        self._is_closed = False
        self.ready: Ready | None = None
        self.tier: Tier | None = None

    async def zygote(self) -> Zygote | Seatbelt:
        """The zygote. Raises `SandboxUnavailable` where none can be started, with the reason."""
        async with self._starting:
            if self._is_closed:
                raise SandboxUnavailable("this sandbox is closed: make a new one")
            if self._zygote is None or self._zygote.is_lost:
                await self._remove_folder()
                self._zygote = await self._started()
            return self._zygote

    @property
    def _is_seatbelt(self) -> bool:
        tier = self._settings.tier
        return tier is Tier.SEATBELT or (tier is None and sys.platform == "darwin")

    async def _started(self) -> Zygote | Seatbelt:
        try:
            zygote = Seatbelt(self._settings.seatbelt) if self._is_seatbelt else Zygote()
        except OSError as error:
            raise SandboxUnavailable(f"a zygote can't be started: {error}") from error
        try:
            self.tier = tier = await self._chosen_tier()
            self.ready = await zygote.prepare(self._said_to_zygote(tier))
        except Lost as lost:
            await self._remove_folder()
            raise SandboxUnavailable(f"the sandbox can't be started in tier {self.tier}: {lost}") from None
        except BaseException:
            zygote.close()
            await self._remove_folder()
            raise
        return zygote

    async def _chosen_tier(self) -> Tier:
        """The settings' tier, or the best that this machine has. Raises `SandboxUnavailable` where it has none."""
        if self._settings.tier is not None:
            return self._settings.tier
        found = await beside(layers)
        if found.tier is Tier.NONE:
            raise SandboxUnavailable(f"this machine can't contain anything: {'; '.join(found.missing)}")
        return found.tier

    def _said_to_zygote(self, tier: Tier) -> dict[str, Any]:
        if tier is not Tier.FULL:
            self._folder = OwnFolder("ferrule-sandbox-")
        return {
            "tier": tier.value,
            "folder": self._folder.path if self._folder is not None else None,
            "path": package_paths(),
            "readable": self._settings.readable,
            "packages": self._settings.packages,
        }

    async def child(self, limits: Limits) -> Child:
        """A contained child that waits for code. Raises `SandboxUnavailable`; nothing has run then."""
        if limits != self._usual:
            child = await self._fresh(limits)
            child.begin()
            return child
        child = await self._taken_spare() or await self._fresh(limits)
        child.begin()
        if self._spare is None and not self._is_closed:
            self._spare = asyncio.create_task(self._fresh(limits))
        return child

    async def _taken_spare(self) -> Child | None:
        """The child that was made ahead, if there is one and it is still good."""
        waiting, self._spare = self._spare, None
        if waiting is None:
            return None
        try:
            child = await waiting
        except SandboxUnavailable:
            return None
        except asyncio.CancelledError:
            # It may have been ready just then; nobody else knows of it.
            waiting.add_done_callback(_close_if_made)
            raise
        if not child.ended.done():
            return child
        child.close()
        return None

    async def _fresh(self, limits: Limits) -> Child:
        why = ""
        # A zygote that was killed meanwhile has run nothing of this: the next one is asked the same.
        for _ in range(3):
            zygote = await self.zygote()
            try:
                return await self._spawned(zygote, limits)
            except Lost as lost:
                why = str(lost)
            except TimeoutError:
                why = "the zygote didn't answer"
                zygote.close()
            except (Unstarted, OSError) as error:
                raise SandboxUnavailable(f"a run can't be contained: {error}") from None
        raise SandboxUnavailable(f"the sandbox's zygote ended three times in a row: {why}")

    async def _spawned(self, zygote: Zygote | Seatbelt, limits: Limits) -> Child:
        child = zygote.spawn(asdict(limits), self._settings.max_output)
        try:
            await child.confined()
        except BaseException:
            child.close()
            raise
        return child

    async def session(self, limits: Limits) -> SessionProcess:
        """The process of a new session. Raises `SandboxUnavailable`."""
        if self._is_seatbelt:
            raise SandboxUnavailable(NO_SESSIONS)
        zygote = await self.zygote()
        assert isinstance(zygote, Zygote)
        with ExitStack() as opened:
            leash = other = None
            if self.tier is Tier.FULL:
                leash, other = socket.socketpair()
                opened.callback(leash.close)
            try:
                child = zygote.spawn(asdict(limits), self._settings.max_output, is_session=True, leash=other)
            except (Lost, OSError) as error:
                raise SandboxUnavailable(f"a session can't be started: {error}") from None
            finally:
                if other is not None:
                    other.close()
            lineage = Lineage(child, leash)
            opened.callback(lineage.leave)
            try:
                member = Member(await lineage.confined())
            except (Lost, Unstarted, OSError) as error:
                raise SandboxUnavailable(f"a session can't be contained: {error}") from None
            process = SessionProcess(lineage, child.channel, child.output, member)
            opened.pop_all()
        child.output.overflow = process.kill
        member.stop()
        return process

    async def aclose(self) -> None:
        """End the zygote and every run. Can be called again."""
        self._is_closed = True
        if self._spare is not None:
            self._spare.cancel()
            with suppress(asyncio.CancelledError):
                if (child := await self._taken_spare()) is not None:
                    child.close()
        if self._zygote is not None:
            self._zygote.close()
            await self._zygote.gone()
        await self._remove_folder()

    async def _remove_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            with suppress(OSError):
                await beside(folder.remove)


def _close_if_made(made: asyncio.Task[Child]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()
