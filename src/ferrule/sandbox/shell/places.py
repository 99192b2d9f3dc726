"""Which files are hidden from a command, and which it may read but not change: the lists, and how they are resolved."""

# Paths are text here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH116, PTH117, PTH118, PTH208

from __future__ import annotations

import os
import pwd
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path

__all__ = ["HIDDEN", "PROTECTED", "Places", "is_settled", "is_within"]

_TICK = 20_000_000

HIDDEN: tuple[str, ...] = (
    # Keys, tokens and sessions of the user.
    *("~/.ssh", "~/.aws", "~/.config", "~/.gnupg", "~/.azure", "~/.kube", "~/.docker", "~/.oci", "~/.password-store"),
    *(
        "~/.netrc",
        "~/.npmrc",
        "~/.yarnrc*",
        "~/.pypirc",
        "~/.git-credentials",
        "~/.pgpass",
        "~/.my.cnf",
        "~/.vault-token",
    ),
    *(
        "~/.cargo/credentials*",
        "~/.m2/settings*.xml",
        "~/.gradle/gradle.properties",
        "~/.terraform.d",
        "~/.terraformrc",
    ),
    *("~/.gem/credentials", "~/.boto", "~/.s3cfg", "~/.databrickscfg", "~/.kaggle", "~/.huggingface", "~/.jupyter"),
    *("~/.cache/huggingface/token", "~/.cache/huggingface/stored_tokens", "~/.local/share/keyrings", "~/.mozilla"),
    *("~/.thunderbird", "~/.pki", "~/.Xauthority", "~/.ICEauthority", "~/.*_history", "~/.lesshst", "~/.viminfo"),
    # State of ferrule and of other agents, which hold conversations and tokens.
    *("~/.local/share/ferrule", "~/.local/state", "~/.claude*", "~/.codex", "~/.gemini", "~/.copilot", "~/.cursor"),
    # The machine's own, which matters where ferrule runs as root.
    *("/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/ssl/private", "/etc/ssh/ssh_host_*", "/etc/docker"),
    *("/etc/kubernetes", "/etc/NetworkManager", "/etc/wireguard", "/var/lib/docker", "/var/lib/containerd"),
    *("/var/lib/kubelet", "/var/spool", "/var/mail", "/var/log", "/var/backups"),
    # In the workspace, at any depth.
    *(".env*", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.key", "*.pem", "*.p12", "*.pfx", "*.jks", "*.kdbx"),
    *("*.ppk", ".netrc", ".pypirc", ".git-credentials", ".htpasswd", ".vault_pass*", "credentials.json"),
)
"""What no command reads: `~/…` in the home folder, `/…` anywhere, a name without a slash in the workspace at any
depth (and, where it starts with a dot, directly in the home folder), `a/b` from the workspace. A `*.pem` file is hidden
where it holds a private key, and a folder named `.env…` isn't where it is a virtual environment."""

PROTECTED: tuple[str, ...] = (".git", ".ferrule", "ferrule.toml", ".mcp.json")
"""What a command may read and not change: paths from the workspace; `.git` also in every folder below it."""


def is_within(path: str, folder: str) -> bool:
    """Whether an absolute path is the folder or lies below it; by text, so both must be resolved."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_settled(changed: int) -> bool:
    """Whether a folder's time of change (ns) would tell of a later change: one within the same tick keeps it."""
    return time.time_ns() - changed > _TICK


@dataclass(slots=True)
class Places:
    """The list of one sandbox, sorted by how its entries are looked up."""

    names: re.Pattern[str]
    """Matches names in the workspace."""
    elsewhere: dict[str, list[str]]
    """By absolute folder: names, or patterns for them. `~/` is written out for each home folder."""
    _known: dict[str, tuple[int, list[str]]] = field(default_factory=dict)

    @classmethod
    def of(cls, listed: Sequence[str], workspace: str) -> Places:
        """Sort a list such as `HIDDEN`."""
        names: list[str] = []
        paths: list[str] = []
        homes = home_folders()
        for entry in (each.rstrip("/") for each in listed):
            if entry.startswith("~/"):
                paths += [home + entry[1:] for home in homes]
            elif "/" not in entry:
                names.append(entry)
                paths += [f"{home}/{entry}" for home in homes if entry.startswith(".")]
            else:
                paths.append(os.path.normpath(os.path.join(workspace, entry)))
        elsewhere: dict[str, list[str]] = {}
        for folder, name in dict.fromkeys(map(os.path.split, paths)):
            elsewhere.setdefault(folder, []).append(name)
        return cls(_matcher(names), elsewhere)

    def existing(self) -> Iterator[str]:
        """The paths elsewhere that are there now, with links followed to what they lead to."""
        for folder, names in self.elsewhere.items():
            try:
                changed = os.stat(folder).st_mtime_ns
            except OSError:
                continue
            known = self._known.get(folder)
            if known is None or known[0] != changed or not is_settled(changed):
                known = self._known[folder] = (changed, _found(folder, names))
            yield from map(os.path.realpath, known[1])


def _matcher(names: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, names)) or r"(?!)")


def _found(folder: str, names: Sequence[str]) -> list[str]:
    """Entries of a folder that match; of one that can't be listed, those that are named in full."""
    try:
        there = os.listdir(folder)
    except OSError:
        return [path for name in names if os.path.lexists(path := f"{folder}/{name}")]
    matcher = _matcher(names)
    return [f"{folder}/{name}" for name in there if matcher.match(name)]


def home_folders() -> tuple[str, ...]:
    """The user's home folders, as HOME and the user database have them; for root those of everybody."""
    found = {os.environ.get("HOME", "")}
    with suppress(KeyError):
        found.add(pwd.getpwuid(os.getuid()).pw_dir)
    if os.geteuid() == 0:
        found |= {str(each) for each in Path("/home").glob("*")} | {"/root"}
    resolved = {os.path.realpath(each) for each in found if os.path.isabs(each)}
    return tuple(sorted(resolved - {"/"}))
