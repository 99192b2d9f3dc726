"""The lists of files that commands can't read, or can read but not change, and how they are resolved."""

# Paths are text here: sorted, compared and resolved by the hundred for each command.
# ruff: noqa: PTH113, PTH117, PTH118, PTH208

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

from ferrule._util.user_folders import find_config_folder, find_data_folder, find_state_folder
from ferrule.errors import SandboxInputError
from ferrule.sandbox.file_versions import cache_by_version
from ferrule.sandbox.own_files import list_hidden_files
from ferrule.sandbox.paths import LinkFollower
from ferrule.sandbox.regular_files import open_regular_file

__all__ = [
    "HIDDEN",
    "OTHER_REPOSITORIES",
    "PROTECTED",
    "UNRESERVED",
    "HiddenPaths",
    "ProtectedNames",
    "check_visible",
    "holds_private_key",
    "list_home_folders",
]

_NOTHING: tuple[str, ...] = ()
_PRIVATE_KEY = b"PRIVATE KEY-----"
_MAX_BUNDLE_BYTES = 1024 * 1024

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
    *("*.ppk", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", ".vault_pass*", "credentials.json"),
    *("*.tfstate*",),
    # Templates of such files, which hold no secrets.
    *("!.env*[._-]example", "!.env*[._-]sample", "!.env*[._-]template", "!.env*[._-]dist"),
)
"""What no command can read: `~/…` in the home folder, `/…` absolute, `a/b` relative to the workspace, a name without
a slash anywhere in the workspace (and, if it starts with a dot, directly in the home folder). After a `!` there is a
name, or a path relative to the workspace, that isn't hidden in the workspace. Case is ignored in names. A `*.pem` file
is hidden if it holds a private key or is over 1 MB, too long to check; a folder named `.env…` isn't hidden if it is a
virtual environment."""

_RESERVED: tuple[str, ...] = (
    *(".git", ".husky", ".ferrule", "ferrule.toml", ".mcp.json"),
    # Settings of editors and other agents, each of which can name programs to run.
    *(".vscode", ".idea", ".zed", ".devcontainer", ".claude", ".codex", ".cursor", ".gemini", ".windsurf"),
)
UNRESERVED: tuple[str, ...] = (
    # Editors.
    *(
        ".devcontainer.json",
        "*.code-workspace",
        ".theia",
        ".vs",
        ".run",
        "*.ipr",
        ".fleet",
        ".helix",
        ".nova",
        ".lapce",
    ),
    *("*.sublime-project", ".project", ".externaltoolbuilders", ".kateproject", ".lite_project.lua", ".tm_properties"),
    *(".exrc", "_exrc", ".vimrc", "_vimrc", ".gvimrc", "_gvimrc", ".nvimrc", ".nvim.lua", ".lazy.lua", ".vim"),
    *(".lvimrc", ".local.vimrc", ".vimrc_local.vim", "_vimrc_local.vim", ".ycm_extra_conf.py", ".neoconf.json"),
    *(".nlsp-settings", ".luarc.json", ".luarc.jsonc"),
    *(".dir-locals.el", ".dir-locals-2.el", "_dir-locals.el", "_dir-locals-2.el"),
    # Workspaces that are set up by a server.
    *(".gitpod.yml", ".gitpod.dockerfile", ".gitpod", ".ona", ".idx", "devfile.yaml", ".devfile.yaml", ".replit"),
    *("replit.nix", ".codesandbox", ".stackblitzrc"),
    # Environments that a shell enters and leaves with the folder.
    *("mise.toml", "mise.*.toml", ".mise.toml", ".mise.*.toml", ".mise", ".config/mise*", "mise/config.toml"),
    *("mise/config.*.toml", "mise/conf.d", ".rtx.toml", ".tool-versions", ".autoenv*", ".direnv/*.rc"),
    *(".shadowenv.d", ".rvmrc", ".versions.conf"),
    # What interpreters and debuggers run when they are started in the folder.
    *(".rprofile", ".renviron", ".rdata", "renv/activate.r", ".irbrc", ".pryrc", ".rdbgrc", ".byebugrc", ".ghci"),
    *(".iex.exs", ".erlang", ".ocamlinit", ".octaverc", ".gdbinit", ".lldbinit", ".pdbrc", ".perldb", ".jdbrc"),
    # Other agents.
    *(".github/hooks", ".github/copilot", ".kiro", ".opencode", "opencode.json", "opencode.jsonc", ".roo", ".roomodes"),
    *(".roorules*", ".kilo", "kilo.json", "kilo.jsonc", ".kilocode", ".kilocodemodes", ".cline", ".clinerules"),
    *(".continue", ".continuerules", ".continuerc.json", ".cursorrules", ".windsurfrules", ".goosehints"),
    *(".aider.conf.yml", ".aider.model.settings.yml", ".qwen", ".amazonq", ".junie", ".trae", ".augment", ".factory"),
    *(".crush.json", "crush.json", ".crush", ".openhands", ".pi", ".qoder", ".codebuddy", ".iflow", ".vibe", ".amp"),
    # Settings of other version control systems.
    *(".hg/hgrc", ".hg/hgrc-not-shared", ".jj/repo/config.toml", ".jj/workspace-config.toml", ".sl/config"),
    *(".bzr/branch/branch.conf", "_darcs/prefs/defaults", ".pijul/config"),
)
"""Protected places that an empty folder can't stand for while a command runs: their programs would take it for damaged
settings or a repository, and so many would fill each listing."""
PROTECTED: tuple[str, ...] = (*_RESERVED, *UNRESERVED)
"""What a command may read but not change: paths relative to the workspace, existing or not, and anything with one of
these names in a folder below it. In a name `*` stands for any text, and case is ignored. docs/sandbox.md says what
each program does with its files."""
OTHER_REPOSITORIES: tuple[str, ...] = (".hg", ".jj", ".sl", ".bzr", "_darcs", ".pijul")
"""Folders of version control systems other than git, which commands write when they commit, and file tools never do."""


@dataclass(frozen=True, slots=True)
class ProtectedNames:
    """The names among protected paths, which are given in lower case."""

    exact: frozenset[str]
    folders: frozenset[str]
    """Names of the folders that others of the names are in: `.hg` for `.hg/hgrc`."""
    pattern: re.Pattern[str]
    """Matches the other names, with a `*` in them."""
    nested: re.Pattern[str]
    """Matches paths, with a slash before them, that end with a name in a folder of a certain name: `/.hg/hgrc`."""

    @classmethod
    def of(cls, listed: Iterable[str]) -> ProtectedNames:
        """Take the names from a list such as `PROTECTED`."""
        listed = tuple(listed)
        names = [each for each in listed if "/" not in each]
        nested = "|".join("/".join(map(_translate, each.split("/"))) for each in listed if "/" in each)
        return cls(
            frozenset(each for each in names if "*" not in each),
            frozenset(folder for each in listed for folder in each.split("/")[:-1]),
            re.compile(f"(?:{'|'.join(_translate(each) for each in names if '*' in each) or '(?!)'})\\Z"),
            re.compile(f".*/(?:{nested or '(?!)'})\\Z", re.DOTALL),
        )

    def __contains__(self, name: object) -> bool:
        """Whether a name, in lower case, is one of them."""
        return isinstance(name, str) and (name in self.exact or self.pattern.match(name) is not None)

    def include(self, below: str) -> bool:
        """Whether the last name of a path, in lower case and with a slash before it, is one of them there."""
        return below.rpartition("/")[2] in self or self.nested.match(below) is not None

    def cover(self, below: str) -> bool:
        """Whether a path, in lower case and with a slash before it, is one of them, or in a folder that is."""
        names = below.split("/")[1:]
        if any(name in self for name in names):
            return True
        if self.folders.isdisjoint(names):
            return False
        return any(self.nested.match("/".join(("", *names[:count]))) for count in range(2, len(names) + 1))


def _translate(name: str) -> str:
    return "[^/]*".join(map(re.escape, name.split("*")))


def check_visible(named: Sequence[str]) -> tuple[str, ...]:
    """Return the names and paths to show although they are hidden. Raises `SandboxInputError` for another kind."""
    if isinstance(named, str):
        raise SandboxInputError("`visible` is a list of names and paths, as in ['.env']")
    for each in named:
        parts = each.rstrip("/").split("/") if isinstance(each, str) else []
        if not parts or not set(parts).isdisjoint({"", "..", "~"}) or parts[0].startswith("!") or "\0" in each:
            raise SandboxInputError(
                f"{each!r} can't be made visible: name a file, as in '.env', or its path within the workspace"
            )
    return tuple(each.rstrip("/") for each in named)


@dataclass(slots=True)
class HiddenPaths:
    """One sandbox's list of hidden paths, grouped by how they are looked up."""

    names: re.Pattern[str]
    """Matches names in the workspace."""
    elsewhere: dict[str, tuple[str, ...]]
    """Names or patterns by absolute folder, with `~/` expanded for each home folder."""
    visible: frozenset[str] = frozenset()
    """Absolute paths of the workspace that are shown, whatever their names."""

    @classmethod
    def parse(cls, listed: Sequence[str], workspace: str) -> HiddenPaths:
        """Parse a list such as `HIDDEN`."""
        names: list[str] = []
        paths: list[str] = []
        shown = [each[1:].rstrip("/") for each in listed if each.startswith("!")]
        homes = list_home_folders()
        for entry in (each.rstrip("/") for each in listed if not each.startswith("!")):
            if entry.startswith("~/"):
                paths += [home + entry[1:] for home in homes]
            elif "/" not in entry:
                names.append(entry)
                # In a workspace that is a home folder, names are searched like in any other.
                paths += [f"{home}/{entry}" for home in homes if entry.startswith(".") and home != workspace]
            else:
                paths.append(os.path.normpath(os.path.join(workspace, entry)))
        # The API keys of ferrule's user, conversations, and what was trusted, wherever `XDG_…_HOME` has put them.
        paths += [str(folder) for folder in (find_config_folder(), find_data_folder(), find_state_folder())]
        elsewhere: dict[str, tuple[str, ...]] = {}
        for folder, name in dict.fromkeys(map(os.path.split, paths)):
            elsewhere[folder] = (*elsewhere.get(folder, ()), name)
        visible = frozenset(os.path.normpath(os.path.join(workspace, each)) for each in shown if "/" in each)
        return cls(_compile_names(names, [each for each in shown if "/" not in each]), elsewhere, visible)

    def find_existing(self, follower: LinkFollower) -> Iterator[str]:
        """The paths in `elsewhere`, and the files that ferrule itself uses, that exist now, with links resolved."""
        yield from filter(os.path.lexists, list_hidden_files())
        for folder, names in self.elsewhere.items():
            for path in _find_matching(folder, names):
                if path not in self.visible:
                    yield follower.follow(path)[-1]


def _compile_names(names: Sequence[str], shown: Sequence[str] = ()) -> re.Pattern[str]:
    """A pattern that matches one of the names, unless that is one of those shown."""
    hidden = "|".join(map(translate, names)) or r"(?!)"
    return re.compile(f"(?!{'|'.join(map(translate, shown)) or '(?!)'})(?:{hidden})", re.IGNORECASE)


@cache_by_version(_NOTHING)
def _find_matching(folder: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The matching entries of a folder; if it can't be listed, those named without a pattern."""
    try:
        there = os.listdir(folder)
    except NotADirectoryError:
        return ()
    except OSError:
        return tuple(path for name in names if os.path.lexists(path := f"{folder}/{name}"))
    matcher = _compile_names(names)
    return tuple(f"{folder}/{name}" for name in there if matcher.match(name))


def list_home_folders() -> tuple[str, ...]:
    """The user's home folders, from HOME and the user database; for root, those of all users."""
    found = {os.environ.get("HOME", "")}
    with suppress(KeyError):
        found.add(pwd.getpwuid(os.getuid()).pw_dir)
    if os.geteuid() == 0:
        found |= {str(each) for each in Path("/home").glob("*")} | {"/root"}
    resolved = {os.path.realpath(each) for each in found if os.path.isabs(each)}
    return tuple(sorted(resolved - {"/"}))


def holds_private_key(path: str) -> bool:
    """Whether a file has a private key; true if it can't be read or is too long, false for a non-file (a pipe)."""
    try:
        with open_regular_file(path) as file:
            if file is None:
                return False
            return os.fstat(file).st_size > _MAX_BUNDLE_BYTES or _PRIVATE_KEY in os.read(file, _MAX_BUNDLE_BYTES)
    except OSError:
        return os.path.isfile(path)
