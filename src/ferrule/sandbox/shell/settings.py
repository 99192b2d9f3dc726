"""The settings of a `ShellSandbox`, validated on creation: what its commands may use, and which variables they get."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fnmatch import translate
from functools import cache
from pathlib import Path

from ferrule._util.secret_words import may_be_secret_name
from ferrule.errors import SandboxInputError
from ferrule.sandbox.hidden_paths import HIDDEN, PROTECTED, check_visible
from ferrule.sandbox.installation import Installation, find_hard_links, record_opened_paths
from ferrule.sandbox.paths import is_within
from ferrule.sandbox.shell.access_plan import AccessPlanner, Mode
from ferrule.sandbox.shell.host_rules import HostRules
from ferrule.sandbox.shell.protected_paths import ProtectedPaths, limit_paths, resolve_opened
from ferrule.sandbox.tiers import Tier

__all__ = [
    "PASSED",
    "ShellSettings",
    "clean_environment",
    "make_planner",
    "make_protected_paths",
    "validate_environment",
]

MB = 1024 * 1024

# What compilers, interpreters and terminals need. Sockets of agents and sessions (SSH_AUTH_SOCK, DBUS_*, DISPLAY,
# DOCKER_HOST) are left out because each is a way out of the sandbox, LD_* because it loads code.
PASSED: tuple[str, ...] = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "NO_COLOR"),
    *("CI", "EDITOR", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_*", "UV_*", "PYTHON*", "NVM_*"),
    *("NODE_*", "JAVA_HOME", "GO*", "CARGO_*", "RUSTUP_*", "RUST*", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS"),
    *("CPPFLAGS", "MAKEFLAGS", "PKG_CONFIG_PATH", "OMP_NUM_THREADS", "SOURCE_DATE_EPOCH"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)


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


_PASSWORD_IN_ADDRESS = re.compile(r"://[^/@\s]+@")
_UNATTENDED = {
    # There is no one to page through output, to type a password or to answer a question.
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
    # A command asks for the hosts that it needs, and not for one where its program looks for a newer version of itself.
    "npm_config_update_notifier": "false",
    "NO_UPDATE_NOTIFIER": "1",
    "npm_config_fund": "false",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "DENO_NO_UPDATE_CHECK": "1",
    "HOMEBREW_NO_AUTO_UPDATE": "1",
    "CHECKPOINT_DISABLE": "1",
    "YARN_ENABLE_TELEMETRY": "0",
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    "NEXT_TELEMETRY_DISABLED": "1",
    "DO_NOT_TRACK": "1",
    # Python takes a compiled file for that of a source of the same size and second, and a model edits faster than that.
    "PYTHONDONTWRITEBYTECODE": "1",
}
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def clean_environment(
    source: Mapping[str, str], *, passed: Iterable[str] = PASSED, given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables of `source` that `passed` names (patterns such as `LC_*` are allowed), without secrets.

    A variable that matches only a pattern is dropped if its name may be that of a secret (`_util/secret_words.py`); any
    variable is dropped if its value has a password in a URL. `given` comes from the user and is taken as it is.
    """
    exact, matches = _split_patterns(tuple(passed))
    environment = {
        name: value
        for name in source
        if (name in exact or (matches(name) and not may_be_secret_name(name)))
        and not _PASSWORD_IN_ADDRESS.search(value := source[name])
    }
    environment.setdefault("PATH", _DEFAULT_PATH)
    environment.setdefault("HOME", "/")
    return environment | _UNATTENDED | dict(given or {})


def validate_environment(variables: dict[str, str]) -> dict[str, str]:
    """Return the variables. Raises `SandboxInputError` if a process can't be started with them."""
    for name, value in variables.items():
        if not name or "=" in name or "\0" in f"{name}{value}":
            raise SandboxInputError(
                f"the environment can't have {name!r}: it has a null byte, or the name is empty or has ="
            )
    return variables


@cache
def _split_patterns(names: tuple[str, ...]) -> tuple[frozenset[str], Callable[[str], object]]:
    """The names, and a matcher for those that are patterns."""
    patterns = "|".join(translate(name) for name in names if "*" in name)
    return frozenset(names), re.compile(patterns or r"(?!)").match
