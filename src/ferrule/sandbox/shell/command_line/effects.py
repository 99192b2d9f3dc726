"""Finds the effects of what a program does: the paths that its words stand for, through the links that are there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ferrule.sandbox.hidden_paths import OTHER_REPOSITORIES, PROTECTED, ProtectedNames
from ferrule.sandbox.own_files import describe_own_file
from ferrule.sandbox.shell.command_line.folders import Folders
from ferrule.sandbox.shell.command_line.links import LinkSearch
from ferrule.sandbox.shell.command_line.outcome import Outcome
from ferrule.sandbox.shell.command_line.syntax import Word
from ferrule.tools.intent import Effect

__all__ = ["EffectFinder"]

_HARMLESS_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/zero"})
_PROTECTED_NAMES = ProtectedNames.of((*PROTECTED, *OTHER_REPOSITORIES))


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
