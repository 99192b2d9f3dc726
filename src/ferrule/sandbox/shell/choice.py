"""Which back end a shell sandbox gets on this machine; a refusal where none keeps what its tier promises."""

from __future__ import annotations

import asyncio

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.layers import layers
from ferrule.sandbox.shell.backend import Backend
from ferrule.sandbox.shell.hosts import HostRules
from ferrule.sandbox.shell.landlocked import LandlockBackend
from ferrule.sandbox.shell.seatbelted import SeatbeltBackend
from ferrule.sandbox.shell.settings import ShellSettings
from ferrule.sandbox.shell.staged import BubblewrapBackend
from ferrule.sandbox.tier import Tier

__all__ = ["backend_for"]


async def backend_for(settings: ShellSettings) -> Backend:
    """The back end of the tier that was asked for, or of the best there is.

    Raises `SandboxUnavailable`: the tier isn't to be had, or can't keep the network's rules.
    """
    network = settings.network if isinstance(settings.network, bool) else HostRules(settings.network)
    if settings.tier is Tier.NONE:
        return LandlockBackend(Tier.NONE, network=True)
    found = await asyncio.to_thread(layers)
    if settings.tier is Tier.SEATBELT or (settings.tier is None and found.tier is Tier.SEATBELT):
        if found.seatbelt is None:
            raise SandboxUnavailable(f"the seatbelt tier needs macOS: {_missing(found.missing)}")
        return SeatbeltBackend(found.seatbelt, network)
    if settings.tier in {None, Tier.FULL} and found.bubblewrap is not None and found.seccomp:
        return BubblewrapBackend(str(found.bubblewrap), network)
    if settings.tier is Tier.FULL:
        raise SandboxUnavailable(
            f"the full tier needs bubblewrap, which isn't there or doesn't run: {_missing(found.missing)}"
        )
    if not (found.landlock and found.seccomp):
        raise SandboxUnavailable(f"this machine can't contain a command: {_missing(found.missing)}")
    if isinstance(network, HostRules):
        raise SandboxUnavailable(
            "without bubblewrap no rule for hosts can be kept, since Landlock knows ports and no hosts: "
            "install bubblewrap, or choose network=False"
        )
    return LandlockBackend(Tier.CONTAINER, network=network)


def _missing(missing: tuple[str, ...]) -> str:
    return "; ".join(missing) or "`ferrule sandbox doctor` says what is missing"
