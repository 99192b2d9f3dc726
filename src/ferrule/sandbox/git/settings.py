"""Reads the settings of git repositories, and tells which of them make git run programs or read other settings.

Git's own parser isn't used, since a command may have written the file. What isn't known to be harmless, or can't be
read, counts as dangerous.
"""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH114, PTH118, PTH120

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ferrule.sandbox.git.repositories import REDIRECT, SETTINGS_FILES, list_settings_files, looks_like_repository
from ferrule.sandbox.paths import is_within
from ferrule.sandbox.regular_files import open_regular_file

__all__ = [
    "Setting",
    "is_harmless",
    "may_become_repository",
    "may_run_settings",
    "parse_settings",
    "read_settings",
]

_MAX_BYTES = 1024 * 1024
_SECTION = re.compile(r'[ \t]*\[[ \t]*([A-Za-z0-9.-]+)[ \t]*(?:"((?:[^"\\]|\\.)*)")?[ \t]*\]')
_ENTRY = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*))?")
_EMPTY = re.compile(r"[ \t]*(?:[#;].*)?")

_HARMLESS: Final[dict[str, str]] = {
    "core": "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol "
    "safecrlf abbrev compression loosecompression bigfilethreshold quotepath preloadindex untrackedcache "
    "sharedrepository splitindex sparsecheckout sparsecheckoutcone longpaths protecthfs protectntfs commentchar "
    "whitespace multipackindex commitgraph trustctime checkstat fscache hidedotfiles worktree fsmonitor",
    "extensions": "worktreeconfig objectformat partialclone noop preciousobjects refstorage relativeworktrees",
    "user": "name email useconfigonly",
    "author": "name email",
    "committer": "name email",
    "init": "defaultbranch",
    "pull": "rebase ff",
    "push": "default autosetupremote followtags",
    "fetch": "prune prunetags parallel writecommitgraph",
    "diff": "algorithm renames renamelimit mnemonicprefix noprefix colormoved context interhunkcontext",
    "merge": "ff conflictstyle renames renamelimit log",
    "rebase": "autosquash autostash updaterefs stat",
    "commit": "verbose cleanup",
    "log": "date decorate follow abbrevcommit",
    "status": "short branch showuntrackedfiles showstash aheadbehind",
    "gc": "auto autodetach autopacklimit pruneexpire reflogexpire",
    "maintenance": "auto strategy",
    "index": "version threads skiphash",
    "feature": "manyfiles experimental",
    "pack": "threads windowmemory packsizelimit usebitmaps",
    "lfs": "repositoryformatversion",
}
"""Settings without a subsection that name no program and no further settings, by section."""
_HARMLESS_BY_NAME: Final[dict[str, str]] = {
    "remote": "url pushurl fetch push tagopt prune prunetags mirror promisor partialclonefilter skipdefaultupdate "
    "skipfetchall",
    "branch": "remote merge rebase pushremote description",
    "submodule": "url active branch shallow ignore fetchrecursesubmodules update",
}
"""The same for sections with a subsection, such as `[remote "origin"]`."""
_HARMLESS_SECTIONS: Final = frozenset({"color", "advice"})
_SAFE_UPDATES: Final = frozenset({"checkout", "rebase", "merge", "none"})
_BOOLEANS: Final = frozenset({"", "true", "false", "yes", "no", "on", "off", "1", "0"})

_REPOSITORY_NAMES = frozenset({".git", "HEAD", "objects", "refs", REDIRECT, *SETTINGS_FILES})
_RUN_BY_READING = re.compile(
    r"|core\.(?:fsmonitor|worktree)|diff\.(?:external|\.command|\.textconv)|filter\..*|include(?:if)?\..*|gpg\..*program"
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of a settings file. `name` is lower-case, without the subsection: `remote..url`; empty if unreadable.

    `value` is as written, without quotes and comments; None for a name alone.
    """

    name: str
    value: str | None
    subsection: str
    line: str


def read_settings(path: str, *, or_link: bool = False) -> list[Setting] | None:
    """The settings in a file; None if there is no such file. What isn't a regular file is one unreadable setting.

    So is a link, unless `or_link`.
    """
    try:
        with open_regular_file(path) as file:
            data = None if file is None else os.read(file, _MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return [Setting("", None, "", "a link")] if os.path.islink(path) else None
    except OSError as error:
        return [Setting("", None, "", error.strerror or "unreadable")]
    if data is None or len(data) > _MAX_BYTES or (not or_link and os.path.islink(path)):
        return [Setting("", None, "", "not a settings file")]
    return list(parse_settings(data.decode("utf-8", "surrogateescape")))


def parse_settings(text: str) -> Iterator[Setting]:
    """Parse the text of a settings file."""
    section = subsection = ""
    for line in text.removeprefix("\ufeff").split("\n"):
        rest = line.removesuffix("\r")
        if found := _SECTION.match(rest):
            # `[remote.origin]` is an old way to write `[remote "origin"]`.
            section, _, dotted = found[1].lower().partition(".")
            subsection = found[2] if found[2] is not None else dotted
            rest = rest[found.end() :]
        if _EMPTY.fullmatch(rest):
            continue
        entry = _ENTRY.fullmatch(rest)
        # A value that goes on in the next line is rare where programs write the file.
        if entry is None or not section or "\0" in rest or (len(rest) - len(rest.rstrip("\\"))) % 2:
            yield Setting("", None, subsection, line.strip())
            continue
        name = f"{section}.{'.' if subsection else ''}{entry[1].lower()}"
        yield Setting(name, None if entry[2] is None else _unquote(entry[2]), subsection, line.strip())


def is_harmless(setting: Setting, repository: str, root: str) -> bool:
    """Whether a setting of a repository makes git run nothing and read no settings elsewhere.

    `root` is the folder that a working tree may be in.
    """
    section, _, key = setting.name.partition(".")
    value = setting.value or ""
    if section in _HARMLESS_SECTIONS:
        return True
    if key.startswith("."):
        if key[1:] not in _HARMLESS_BY_NAME.get(section, "").split():
            return False
        if key in (".url", ".pushurl", ".remote", ".pushremote"):
            return "::" not in value and not value.startswith("-")
        return key != ".update" or value in _SAFE_UPDATES
    if setting.name == "core.fsmonitor":
        return value.lower() in _BOOLEANS
    if setting.name == "core.worktree":
        return is_within(os.path.realpath(os.path.join(repository, value)), root)
    return key in _HARMLESS.get(section, "").split() and "::" not in value


def _unquote(value: str) -> str:
    """The value without comments and quotes, as git reads it."""
    found, is_quoted, is_escaped = [], False, False
    for each in value.strip(" \t"):
        if is_escaped:
            found.append({"n": "\n", "t": "\t", "b": "\b"}.get(each, each))
            is_escaped = False
        elif each == "\\":
            is_escaped = True
        elif each == '"':
            is_quoted = not is_quoted
        elif each in "#;" and not is_quoted:
            break
        else:
            found.append(each)
    return "".join(found).rstrip(" \t")


def may_run_settings(folder: str, workspace: str) -> bool | None:
    """Whether the settings of the repository that `folder` is in may run a program; None for the workspace's own.

    The workspace's own settings, which no command can write, count only if they name what a reading command runs. In
    other repositories, all that isn't known to be harmless does.
    """
    found = _find_repository(os.path.realpath(folder), workspace)
    if found is None:
        return False
    is_own = found == os.path.join(workspace, ".git")
    for path in list_settings_files(found):
        try:
            status = os.lstat(path)
        except OSError:
            continue
        version = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if _has_danger(path, workspace, is_own, *version):
            return None if is_own else True
    return False


def may_become_repository(written: Iterable[str]) -> bool:
    """Whether writing these paths may make a repository, or change the settings of one."""
    return any(not _REPOSITORY_NAMES.isdisjoint(path.split("/")) for path in written)


def _find_repository(folder: str, workspace: str) -> str | None:
    """The `.git`, or the folder itself, that git takes for the repository which `folder`, in the workspace, is in."""
    while is_within(folder, workspace):
        git = os.path.join(folder, ".git")
        if os.path.lexists(git):
            return git
        if looks_like_repository(folder):
            return folder
        folder = os.path.dirname(folder)
    return None


@lru_cache(maxsize=256)
def _has_danger(path: str, workspace: str, is_own: bool, *_version: int) -> bool:
    settings = read_settings(path) or ()
    return any(
        not is_harmless(one, os.path.dirname(path), workspace)
        and not (is_own and (not _RUN_BY_READING.fullmatch(one.name) or _is_large_file_filter(one)))
        for one in settings
    )


def _is_large_file_filter(setting: Setting) -> bool:
    return setting.name.startswith("filter..") and re.match(r"git-lfs |true$|false$", setting.value or "") is not None
