"""What a `ShellSandbox` is made with, checked when it is made."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from ferrule.errors import SandboxInputError
from ferrule.sandbox.hidden_paths import HIDDEN, PROTECTED
from ferrule.sandbox.shell.access_plan import Mode
from ferrule.sandbox.shell.environment import PASSED
from ferrule.sandbox.shell.host_rules import HostRules
from ferrule.sandbox.tiers import Tier

__all__ = ["ShellSettings"]

MB = 1024 * 1024


@dataclass(slots=True, eq=False)
class ShellSettings:
    """Where commands run, what they reach and what they may use. Raises `SandboxInputError` for what can't be."""

    workspace: Path | str
    """The folder that commands start in."""
    mode: Mode | str = Mode.WORKSPACE_WRITE
    network: bool | Sequence[str] = False
    """False: none but the sandbox's own loopback. A list of hosts, see `HostRules`: through a proxy that lets nothing
    else through, which `HTTPS_PROXY` and the like tell programs. True: the machine's own network, unfiltered."""
    _: KW_ONLY
    hidden: Sequence[str] = HIDDEN
    """What no command reads; see `places.HIDDEN` for how entries are written."""
    protected: Sequence[str] = PROTECTED
    """What of the workspace a command doesn't change, unless `run(…, writable=…)` names it."""
    open_installation: Sequence[Path | str] = ()
    """Paths of what ferrule itself is started from (its environment, its own package) that commands may write after
    all, as far as the mode lets them. What they write there is run uncontained, by the next start of ferrule at the
    latest; no Python sandbox is started in this program from then on. The user's to say, never a model's."""
    readable: Sequence[Path | str] = ()
    """Paths to read although they are hidden, or lie in the host's `/tmp`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that commands get, as they are."""
    passed: Sequence[str] = PASSED
    """Names of variables of this process that commands get, where they hold no secret; `LC_*` is a pattern."""
    tier: Tier | str | None = None
    """None is the best that this machine has. `"none"` contains nothing: the user's to say, never a model's."""
    shell: str = "/bin/sh"
    max_output: int = MB
    """Bytes of output that are kept in memory; the rest is left out of the middle and in the file `spilled`."""
    max_spill: int = 100 * MB
    """Bytes of output after which a command is ended."""
    processes: int = 1024
    """Processes and threads of the commands that run at a time, where they can be limited."""
    file_size: int = 4096 * MB
    """Bytes of the longest file that a command may write."""
    grace: float = 2.0
    """Seconds from SIGTERM to SIGKILL."""
    scan_limit: int = 50_000
    """How many folders of the workspace are searched for secrets before each command. Where there are more, those at
    its top that hold the most are hidden."""

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
        self.workspace = Path(os.path.realpath(self.workspace))
        if not self.workspace.is_dir() or str(self.workspace) == "/":
            raise SandboxInputError(f"the workspace {self.workspace} isn't a folder that can be worked in")
