"""Chooses a shell sandbox's back end on this machine; refuses if none can keep the tier's promises."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.doctor import detect_layers
from ferrule.sandbox.shell.access_plan import AccessPlan
from ferrule.sandbox.shell.backends.landlock import LandlockBackend
from ferrule.sandbox.shell.backends.namespaces import NamespaceBackend
from ferrule.sandbox.shell.backends.seatbelt import SeatbeltBackend
from ferrule.sandbox.shell.host_rules import HostRules
from ferrule.sandbox.shell.process import CommandStart, ContainedProcess
from ferrule.sandbox.shell.proxy import FilteringProxy
from ferrule.sandbox.shell.settings import ShellSettings
from ferrule.sandbox.tiers import Tier

__all__ = ["choose_backend"]


async def choose_backend(settings: ShellSettings) -> Backend:
    """Choose the back end of the requested tier, or of the best available one.

    Raises `SandboxUnavailable` if the tier isn't available or can't enforce the network's rules.
    """
    network = settings.network if isinstance(settings.network, bool) else HostRules(settings.network)
    if settings.tier is Tier.NONE:
        return LandlockBackend(Tier.NONE, network=True)
    found = await asyncio.to_thread(detect_layers)
    if settings.tier is Tier.SEATBELT or (settings.tier is None and found.tier is Tier.SEATBELT):
        if found.seatbelt is None:
            raise SandboxUnavailable(f"the seatbelt tier needs macOS: {_describe_missing(found.missing)}")
        return SeatbeltBackend(found.seatbelt, network)
    if settings.tier in {None, Tier.FULL} and found.shell_tier is Tier.FULL:
        return NamespaceBackend(network)
    if settings.tier is Tier.FULL:
        raise SandboxUnavailable(f"the full tier isn't available here: {_describe_missing(found.missing)}")
    if not (found.landlock and found.seccomp):
        raise SandboxUnavailable(f"this machine can't contain a command: {_describe_missing(found.missing)}")
    if isinstance(network, HostRules) and not network.allow_nothing:
        raise SandboxUnavailable(
            "the container tier can't enforce rules for hosts, since Landlock knows only ports: choose "
            "network=False, or a machine with the full tier"
        )
    return LandlockBackend(Tier.CONTAINER, network=network is True)


def _describe_missing(missing: tuple[str, ...]) -> str:
    return "; ".join(missing) or "`ferrule sandbox doctor` says what is missing"


class Backend(Protocol):
    """Starts commands in one tier."""

    tier: Tier

    needs: Sequence[str]
    """Paths that commands must be able to read, even if they are on a list."""
    has_mounts: bool
    """Whether commands have mounts of their own: a `/tmp`, and covers over what they may not change."""

    async def start(
        self, plan: AccessPlan, start: CommandStart, hosts: HostRules | None = None
    ) -> tuple[ContainedProcess, FilteringProxy | None]:
        """Start a command under a plan; returns it and its proxy, if it has one.

        `hosts` are what this command may reach, None for what the sandbox's settings say.
        """

    async def aclose(self) -> None:
        """End the processes that the back end itself keeps running."""
