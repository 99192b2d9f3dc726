"""A command line as data: its parts, and the effects that a policy judges.

Effects are found from the paths that the words of a program stand for, in the folders that the command line may be in
at that point, through the links that are there.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ferrule.sandbox.hidden_paths import OTHER_REPOSITORIES, PROTECTED, ProtectedNames
from ferrule.sandbox.own_files import describe_own_file
from ferrule.sandbox.paths import is_within
from ferrule.sandbox.shell.command_line.links import LinkSearch
from ferrule.sandbox.shell.command_line.outcome import Outcome
from ferrule.sandbox.shell.command_line.syntax import Word
from ferrule.tools.intent import Effect

__all__ = ["CommandLine", "EffectFinder", "Folders", "Part"]

_HARMLESS_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/zero"})
_PROTECTED_NAMES = ProtectedNames.of((*PROTECTED, *OTHER_REPOSITORIES))
_MAX_FOLDERS = 8


@dataclass(frozen=True, slots=True)
class Part:
    """One program, assignment or redirection of a command line, as written from `start` to `end` (characters).

    `words` are those of the program without its wrappers (`timeout 5`), or empty if not all are known; `effects` is
    what it would do.
    """

    text: str
    start: int
    end: int
    words: tuple[str, ...]
    effects: tuple[Effect, ...]
    kind: str = "program"
    """`program`, `assignment` or `redirection`."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What a command line would do.

    With a `problem`, which says why it can't be judged, the only effect is to run the whole text, without words: no
    rule for commands covers it, and it should be asked about under every profile. `parts` then has what was found.
    """

    text: str
    parts: tuple[Part, ...]
    effects: tuple[Effect, ...]
    problem: str | None = None

    @property
    def only_reads(self) -> bool:
        """Whether all of it is known to only read, so that it can run where nothing can be written."""
        return all(effect.kind == "read" for effect in self.effects)


@dataclass(frozen=True, slots=True)
class Folders:
    """The absolute paths of the folders that the shell may be in; None if that isn't known.

    `cd` may fail, so after `cd sub; …` it is one of two.
    """

    paths: tuple[str, ...] | None

    def move(self, target: str | None) -> Folders:
        """The folders after a successful `cd target`; None is a target that isn't known."""
        if not target or target.startswith("-"):
            return Folders(None)
        if target.startswith("/"):
            return Folders((target,)) if ".." not in target.split("/") else Folders(None)
        if self.paths is None:
            return self
        parts = [part for part in target.split("/") if part not in ("", ".")]
        ups = 0
        while ups < len(parts) and parts[ups] == "..":
            ups += 1
        # After a link, `..` is another folder for `cd` than for the system.
        if ".." in parts[ups:] or (ups and len(self.paths) > 1):
            return Folders(None)
        found = []
        for path in self.paths:
            above = path.split("/")[: -ups or None]
            found.append(posixpath.join("/".join(above) or "/", *parts[ups:]))
        return Folders(tuple(found))

    def join(self, other: Folders) -> Folders:
        """The folders of both."""
        if self.paths is None or other.paths is None:
            return Folders(None)
        paths = tuple(dict.fromkeys((*self.paths, *other.paths)))
        return Folders(paths) if len(paths) <= _MAX_FOLDERS else Folders(None)

    def locate(self, path: str) -> tuple[str, ...]:
        """The absolute paths that `path` may stand for; the root if that isn't known."""
        if path.startswith("/"):
            return (path,)
        if self.paths is None:
            return ("/",)
        return tuple(folder if path in ("", ".") else posixpath.join(folder, path) for folder in self.paths)

    def are_within(self, workspace: str) -> bool:
        """Whether all are the workspace or below it, by their names."""
        return self.paths is not None and all(is_within(path, workspace) for path in self.paths)


@dataclass(frozen=True, slots=True)
class EffectFinder:
    """Finds effects of a program in `workspace`; without `search`, no links are followed."""

    workspace: str
    search: LinkSearch | None

    def find(
        self, outcome: Outcome, known: tuple[str, ...], covering: tuple[str, ...], folders: Folders
    ) -> list[Effect]:
        """Find all but that it runs. `known` are its words, and `covering` those by which a rule may allow a write."""
        effects = list[Effect]()
        for word in outcome.reads:
            is_recursive = outcome.is_recursive or word.has_pattern
            effects += [Effect("read", each, known, is_recursive=is_recursive) for each in self.locate(word, folders)]
        if outcome.reads_folder or (outcome.reads and not effects):
            starts = folders.paths or ("/",)
            effects += [Effect("read", each, known, is_recursive=outcome.is_recursive) for each in starts]
        if outcome.follows:
            followed = self._follow_links([effect.target for effect in effects])
            effects += [Effect("read", each, known, is_recursive=True) for each in followed]
        for word in outcome.writes:
            written = self.find_writes(word, covering, folders)
            effects += [replace(one, is_recursive=True) for one in written] if outcome.is_recursive else written
        for word in outcome.writes_uncovered:
            effects += self.find_writes(word, (), folders)
        if outcome.writes_repository:
            effects.append(Effect("write", f"{self.workspace}/.git", covering, is_protected=True))
        effects += [Effect("net", host, covering) for host in outcome.hosts]
        return effects

    def locate(self, word: Word, folders: Folders) -> list[str]:
        """The absolute paths that a word may stand for in one of `folders`, or the folder that they are in."""
        if word.has_tilde and word.prefix and not word.has_pattern:
            return [word.prefix]
        if word.is_pipe:
            return []
        if word.text is None and not word.has_pattern:
            return ["/"]
        path = word.prefix
        if word.text is None:
            path = path.rpartition("/")[0] + ("/" if path.startswith("/") else "")
        if path.startswith("~") and word.has_tilde:
            return [path or "~"]
        found = folders.locate(path)
        if word.text is not None:
            return list(found)
        if word.pattern is None:
            return [*found, *self._follow_links(found)]
        if self.search is None:
            return list(found)
        matched = [self.search.match(folder, word.pattern) for folder in folders.paths or ("/",)]
        return [*found, *(path for paths in matched for path in (["/"] if paths is None else paths))]

    def find_writes(self, word: Word, words: tuple[str, ...], folders: Folders) -> list[Effect]:
        """The effects of writing what a word stands for; `words` are those of the program."""
        if word.text in _HARMLESS_TARGETS:
            return []
        if word.text is None and not (word.has_tilde and not word.has_pattern and word.prefix):
            return [Effect("write", "/")]
        return [Effect("write", target, words, _is_protected(target)) for target in self.locate(word, folders)]

    def _follow_links(self, folders: Iterable[str]) -> list[str]:
        """The paths outside that links below these folders lead to."""
        found = list[str]()
        if self.search is None:
            return found
        for folder in folders:
            paths = self.search.walk(folder)
            if paths is None:  # too many files to tell
                return ["/"]
            found += paths
        return found


def _is_protected(path: str) -> bool:
    return any(part.casefold() in _PROTECTED_NAMES for part in path.split("/")) or bool(describe_own_file(path))
