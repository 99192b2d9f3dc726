"""The settings of a `ShellSandbox` and the arguments of its commands, validated before anything runs."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path

from ferrule.errors import SandboxInputError
from ferrule.sandbox.hidden_paths import HIDDEN, PROTECTED, check_visible
from ferrule.sandbox.installation import Installation, find_hard_links, record_opened_paths
from ferrule.sandbox.shell.access_plan import AccessPlanner, Mode
from ferrule.sandbox.shell.environment import PASSED
from ferrule.sandbox.shell.host_rules import HostRules
from ferrule.sandbox.shell.protected_paths import ProtectedPaths, limit_paths, resolve_opened
from ferrule.sandbox.tiers import Tier
from ferrule.sandbox.visible_paths import is_within

__all__ = [
    "ShellSettings",
    "make_planner",
    "make_protected_paths",
    "validate_command",
    "validate_hosts",
    "validate_mode",
    "validate_seconds",
]

MB = 1024 * 1024
# The kernel's limit on one argument.
_MAX_COMMAND_BYTES = 128 * 1024 - 1


@dataclass(slots=True, eq=False)
class ShellSettings:
    """Where commands run and what they may access and use. Raises `SandboxInputError` if invalid."""

    workspace: Path | str
    """The folder that commands start in."""
    mode: Mode | str = Mode.WORKSPACE_WRITE
    network: bool | Sequence[str] = False
    """False: only the sandbox's own loopback. A list of hosts (see `HostRules`): through a proxy that allows nothing
    else, set by `HTTPS_PROXY` and the like. An empty list: as False, and `CommandResult.refused` names the hosts that a
    command requested, as far as the tier has a proxy. True: the machine's own network, unfiltered."""
    _: KW_ONLY
    added: Sequence[Path | str] = ()
    """Further folders that commands may use like the workspace, with the same hidden and protected names."""
    hidden: Sequence[str] = HIDDEN
    """What no command can read; see `hidden_paths.HIDDEN` for the syntax."""
    visible: Sequence[str] = ()
    """Names, and paths relative to the workspace, that commands can use although `hidden` has their names: `.env`."""
    protected: Sequence[str] = PROTECTED
    """Workspace paths that a command can't change unless `run(…, writable=…)` names them."""
    open_installation: Sequence[Path | str] = ()
    """Paths that ferrule itself runs from (its environment, its own package) that commands may write anyway, as far as
    the mode allows. What they write there runs uncontained, at the latest at ferrule's next start; this process starts
    no more Python sandboxes. For the user to set, never a model."""
    readable: Sequence[Path | str] = ()
    """Paths to read although they are hidden, or in the host's `/tmp`."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables passed to commands unchanged."""
    passed: Sequence[str] = PASSED
    """Names of this process's variables that commands get if they hold no secret; `LC_*` is a pattern."""
    tier: Tier | str | None = None
    """None: the best available. `"none"` contains nothing and is for the user to set, never a model."""
    shell: str = "/bin/sh"
    max_output: int = MB
    """Bytes of output kept in memory; longer output is cut in the middle, and complete in the file `spilled`."""
    max_spill: int = 100 * MB
    """Bytes of output after which a command is ended."""
    processes: int = 1024
    """Processes and threads of all running commands, where they can be limited."""
    file_size: int = 4096 * MB
    """The maximum size of a file that a command writes, in bytes."""
    grace: float = 2.0
    """Seconds from SIGTERM to SIGKILL."""
    scan_limit: int = 50_000
    """How many workspace folders are searched for secrets before each command. If there are more, the largest
    top-level folders are hidden."""

    def __post_init__(self) -> None:
        try:
            self.mode = Mode(self.mode)
            self.tier = None if self.tier is None else Tier(self.tier)
        except ValueError as error:
            raise SandboxInputError(str(error)) from error
        if isinstance(self.open_installation, str):
            raise SandboxInputError("`open_installation` is a list of paths, as in ['.venv']")
        if isinstance(self.network, str):
            raise SandboxInputError("`network` is a list of hosts, as in ['packages.example'], or True or False")
        if not isinstance(self.network, bool):
            HostRules(self.network)
        if isinstance(self.added, str):
            raise SandboxInputError("`added` is a list of folders, as in ['../shared']")
        self.visible = check_visible(self.visible)
        self.workspace = _resolve_folder(self.workspace, "the workspace")
        folders = dict.fromkeys(_resolve_folder(each, "the added folder") for each in self.added)
        self.added = tuple(each for each in folders if not each.is_relative_to(self.workspace))


def _resolve_folder(path: Path | str, name: str) -> Path:
    folder = Path(os.path.realpath(path))
    if not folder.is_dir() or str(folder) == "/":
        raise SandboxInputError(f"{name} {folder} isn't a usable folder")
    return folder


def make_protected_paths(settings: ShellSettings, tier: Tier | None = None) -> list[ProtectedPaths]:
    """Make the protected paths of the workspace and of each added folder.

    Ferrule's installation isn't among them in read-only mode and in tier `NONE`. Raises `SandboxInputError` or
    `SandboxUnavailable` like `ProtectedPaths`.
    """
    folders = (settings.workspace, *settings.added)
    return [_make_protected_paths(str(each), settings, tier) for each in folders]


def make_planner(
    settings: ShellSettings, protected_paths: Sequence[ProtectedPaths], readable: Sequence[str], *, can_cover: bool
) -> AccessPlanner:
    """Make the planner of a sandbox from what `make_protected_paths` returned; see `AccessPlanner`."""
    mode, limit = Mode(settings.mode), settings.scan_limit
    hidden = (*settings.hidden, *(f"!{each}" for each in settings.visible))
    added = [
        AccessPlanner(mode, hidden, each, (), can_cover=can_cover, scan_limit=limit) for each in protected_paths[1:]
    ]
    own = protected_paths[0]
    return AccessPlanner(mode, hidden, own, readable, can_cover=can_cover, added=added, scan_limit=limit)


def _make_protected_paths(workspace: str, settings: ShellSettings, tier: Tier | None) -> ProtectedPaths:
    mode = Mode(settings.mode)
    if tier is Tier.NONE or mode is Mode.READ_ONLY:
        return ProtectedPaths(workspace, settings.protected, Installation((), ()), ())
    installation = Installation.find(workspace)
    opened = resolve_opened(settings.open_installation, workspace, installation)
    links = find_hard_links(workspace, installation.paths) if not opened else []
    installation = replace(installation, paths=(*installation.paths, *limit_paths(links, workspace)))
    protected_paths = ProtectedPaths(workspace, settings.protected, installation, opened)
    named = ", ".join(repr(str(path)) for path in settings.open_installation)
    record_opened_paths(
        [path for path in opened if mode is Mode.FULL or is_within(path, workspace)],
        f"ShellSandbox(open_installation=[{named}])",
    )
    return protected_paths


def validate_command(command: str) -> str:
    """Return the command. Raises `SandboxInputError` if a shell can't run it."""
    if not isinstance(command, str):
        raise SandboxInputError(f"a command is text, not {type(command).__name__}")
    if not command.strip():
        raise SandboxInputError("the command is empty")
    if "\0" in command:
        raise SandboxInputError("the command has a null byte, which a shell can't be given")
    try:
        length = len(command.encode())
    except UnicodeEncodeError as error:
        raise SandboxInputError(f"the command can't be written as UTF-8: {error}") from error
    if length > _MAX_COMMAND_BYTES:
        raise SandboxInputError(
            f"the command has {length} bytes and the limit is {_MAX_COMMAND_BYTES}: write it to a file and run that"
        )
    return command


def validate_seconds(name: str, seconds: float | None) -> float | None:
    """Return the seconds as a float; None means no limit. Raises `SandboxInputError` if not positive."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise SandboxInputError(f"`{name}` is {seconds!r}, and should be seconds above zero, or None")
    return float(seconds)


def validate_mode(mode: Mode | str | None) -> Mode | None:
    """Return the mode of one command. Raises `SandboxInputError` if it isn't one."""
    try:
        return None if mode is None else Mode(mode)
    except ValueError as error:
        raise SandboxInputError(str(error)) from error


def validate_hosts(hosts: Sequence[str], network: bool | Sequence[str]) -> HostRules | None:
    """Return the rules of a command with `hosts` in a sandbox with `network`, None if `hosts` add nothing to it.

    Raises `SandboxInputError` for an invalid rule.
    """
    if isinstance(hosts, str):
        raise SandboxInputError("`hosts` is a list of hosts, as in ['packages.example']")
    if not hosts:
        return None
    rules = HostRules([*(() if isinstance(network, bool) else network), *hosts])
    return rules if network is not True else None
