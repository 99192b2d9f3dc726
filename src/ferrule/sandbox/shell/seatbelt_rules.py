"""The seatbelt tier's rules for a layout, and what it tries before its first command."""

from __future__ import annotations

import os
from shlex import quote

from ferrule.sandbox.shell.layout import REPLACED, Access, Layout, Mode
from ferrule.sandbox.shell.places import home_folders
from ferrule.sandbox.shell.selftest import Canary

__all__ = ["canaries", "real_rules"]

# What macOS has of its own that no command should read, beside the lists of `places`. The user's other programs have
# their temporary files in the last one.
_OF_A_HOME = (
    *("Accounts", "Calendars", "Containers", "Cookies", "Group Containers", "HTTPStorages", "IdentityServices"),
    *("Keychains", "Mail", "Messages", "Metadata", "Mobile Documents", "Reminders", "Safari", "Suggestions", "WebKit"),
    *(f"Application Support/{name}" for name in ("AddressBook", "BraveSoftware", "Firefox", "Google", "MobileSync")),
    *(f"Application Support/{name}" for name in ("Claude", "Code", "Cursor", "Microsoft Edge", "com.apple.TCC")),
)
_OF_THE_MACHINE = ("/private/etc/master.passwd", "/private/var/db/dslocal", "/private/var/root")
_TEMPORARY = "/private/var/folders"


def real_rules(layout: Layout) -> list[tuple[str, str]]:
    """The layout's rules by real paths, and what macOS has beside them; the layout's own word goes before."""
    own = {os.path.realpath(f"{home}/Library/{name}"): Access.HIDDEN for home in home_folders() for name in _OF_A_HOME}
    own |= dict.fromkeys(_OF_THE_MACHINE, Access.HIDDEN)
    if layout.mode is not Mode.FULL:
        own[_TEMPORARY] = Access.HIDDEN
    # Of the layout's paths these alone may be links: `/tmp` is one.
    own |= {os.path.realpath(path): access for path, access in layout.rules if path in REPLACED}
    own |= {path: access for path, access in layout.rules if path not in REPLACED}
    return [(path, access.value) for path, access in own.items()]


def canaries(state: str, *, network: bool) -> tuple[Canary, ...]:
    """What is tried beside the canaries of every tier. Whatever isn't the profile's refusal is said to have worked.

    `state` is the sandbox's own folder, of which a command sees `tmp` alone. `network`: all of it is allowed.
    """
    canary, linked, moved = (quote(f"{state}/{name}") for name in ("canary", "tmp/linked", "tmp/moved"))
    refused = '*"not permitted"*|*"ermission denied"*'

    def unless_refused(name: str, command: str) -> Canary:
        return Canary(name, f"case $(LC_ALL=C {command} 2>&1) in {refused}) false;; *) true;; esac")

    found = [
        unless_refused("signal-outside", f"/bin/sh -c 'kill -0 {os.getpid()} && echo reached'"),
        Canary("link-hidden", f"/bin/ln {canary} {linked} && read -r line <{linked}"),
        Canary("move-hidden", f"/bin/mv {canary} {moved} && read -r line <{moved}"),
    ]
    if not network:
        found.append(unless_refused("network", "/bin/bash -c 'exec 9<>/dev/tcp/127.0.0.1/9'"))
    return tuple(found)
