"""Reads the settings of git repositories: which of them make git run programs, and which files they name.

Git's own parser isn't used, since a command may have written the file. What isn't known to be harmless, or can't be
read, counts as dangerous.
"""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH111, PTH114, PTH116, PTH118, PTH120

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ferrule.sandbox.file_versions import Inode, cache_by_version
from ferrule.sandbox.paths import is_within
from ferrule.sandbox.regular_files import open_regular_file

__all__ = ["NamedPaths", "Setting", "find_named_paths", "is_harmless", "parse_settings", "read_settings"]

_MAX_BYTES = 1024 * 1024
_MAX_INCLUDED = 100
_LONGEST_LINE = 10_000
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
# Settings whose value is a command line, of which each word that is a file of the workspace is run or read as code.
_COMMANDS: Final = re.compile(
    r"core\.(fsmonitor|sshcommand|gitproxy|editor|pager|askpass|alternaterefscommand)|sequence\.editor|credential\..*"
    r"|gpg\..*(program|command)|(filter|diff|merge)\.\..*|(diff|interactive|pager|sendemail|instaweb|lfs)\..*"
    r"|(difftool|mergetool|guitool|browser|man|trailer|tar|hook)\.\..*|remote\.\.(uploadpack|receivepack)"
    r"|uploadpack\.packobjectshook|imap\.tunnel|submodule\.\.update"
)
_WORDS: Final = re.compile(r"[\w./@+-]+")
_INTERPRETERS: Final = frozenset({"sh", "bash", "dash", "zsh", "python", "python3", "node", "perl", "ruby"})


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


@dataclass(frozen=True, slots=True)
class NamedPaths:
    """What a file of settings names, as git would open it: links aren't resolved, and most words aren't files."""

    settings: tuple[str, ...] = ()
    """Files of further settings, and of attributes."""
    hooks: tuple[str, ...] = ()
    """Folders of hooks."""
    words: tuple[str, ...] = ()
    """The words of command lines as paths."""
    programs: tuple[str, ...] = ()
    """Those of them that a command line would run as a program or script of the working tree."""
    linked: tuple[Inode, ...] = ()
    """The file itself, if it has other names too (hard links)."""


_NOTHING: tuple[NamedPaths, tuple[str, ...]] = NamedPaths(), ()


def find_named_paths(file: str, tree: str) -> list[NamedPaths]:
    """What a file of settings, and each that it includes, names; `tree` is the working tree."""
    found: dict[str, NamedPaths] = {}
    waiting = [file]
    while waiting and len(found) < _MAX_INCLUDED:
        path = waiting.pop()
        if path not in found:
            named, included = _find_named_paths(path, tree)
            found[path] = named
            waiting += included
    return list(found.values())


@cache_by_version(_NOTHING)
def _find_named_paths(file: str, tree: str) -> tuple[NamedPaths, tuple[str, ...]]:
    """What one file names, and the files that it includes, whatever the condition."""
    settings, hooks, words, programs, included = (list[str]() for _ in range(5))
    for setting in read_settings(file, or_link=True) or ():
        value = os.path.expanduser(setting.value or "")
        if setting.name in ("include.path", "includeif..path") and value:
            included.append(os.path.join(os.path.dirname(file), value))
        elif setting.name == "core.attributesfile" and value:
            settings.append(os.path.join(tree, value))
        elif setting.name == "core.hookspath" and value:
            hooks.append(os.path.join(tree, value))
        elif setting.name == "init.templatedir" and value:
            hooks.append(os.path.join(tree, value, "hooks"))
            settings.append(os.path.join(tree, value, "config"))
        elif _COMMANDS.fullmatch(setting.name) or (setting.name.startswith("alias.") and value.startswith("!")):
            found = _split_words(value)
            words += [os.path.join(tree, word) for word in _list_words(value, found)]
            programs += [os.path.join(tree, word) for word in _find_program(found)]
    named = NamedPaths((*settings, *included), tuple(hooks), tuple(words), tuple(programs), _find_linked(file))
    return named, tuple(included)


def _find_linked(file: str) -> tuple[Inode, ...]:
    try:
        status = os.stat(file)
    except OSError:
        return ()
    return ((status.st_dev, status.st_ino),) if status.st_nlink > 1 else ()


def _find_program(words: list[str]) -> list[str]:
    """The word of a command line that names a file to run, at its beginning or after an interpreter."""
    if words[:1] and "/" in words[0]:
        return words[:1]
    is_script = len(words) > 1 and words[0] in _INTERPRETERS and not words[1].startswith("-")
    return words[1:2] if is_script else []


def _list_words(value: str, words: list[str]) -> dict[str, None]:
    """The words of a command line, and what looks like a path in a script in it: `sh -c '. "$top"/tools/x.sh'`."""
    parts = [part for each in _WORDS.findall(value) if "/" in (part := each.rstrip("./"))]
    return dict.fromkeys((*words, *parts, *(part.lstrip("/") for part in parts if part.strip("/"))))


def _split_words(value: str) -> list[str]:
    # `shlex` takes quadratic time for a long word.
    if len(value) > _LONGEST_LINE:
        return [word.strip("'\"") for word in value.lstrip("!").split()]
    try:
        return shlex.split(value.lstrip("!"))
    except ValueError:
        return value.split()


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
