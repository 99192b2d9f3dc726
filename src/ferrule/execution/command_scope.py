"""What a rule that allows a command doesn't cover, though more words may follow those of the rule.

A path, link or address outside of the workspace, and an option that changes which code is run or where: an allow for
`npm test` is not one for `npm test --prefix /elsewhere`, nor one for `pytest` for `pytest -p other_plugin`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ferrule.execution.rule_matching import find_path_outside

_SCRIPTS = ("-C", "--prefix", "--dir", "--cwd", "--script-shell", "--shell", "--node-options", "--userconfig")
_PYTHON_TESTS = ("-p", "-c", "--config-file", "--rootdir", "--confcutdir", "--basetemp", "-o", "--override-ini")

CHANGING_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "pytest": (*_PYTHON_TESTS, "--pdbcls", "--import-mode"),
    **dict.fromkeys(("npm", "yarn", "pnpm"), (*_SCRIPTS, "--globalconfig")),
    "cargo": ("-C", "-Z", "--config", "--manifest-path", "--target-dir"),
    "go": ("-C", "--exec", "--toolexec", "--vettool", "--overlay", "--modfile"),
    "git": ("--ext-diff", "--textconv", "--exec-path", "--git-dir", "--work-tree"),
    "mypy": ("--python-executable", "--config-file", "--custom-typeshed-dir"),
    "pyright": ("-p", "--project", "--pythonpath"),
    "flake8": ("--config", "--append-config"),
    "isort": ("--settings-path", "--sp"),
    **dict.fromkeys(("ruff", "black"), ("--config",)),
    "eslint": ("-c", "--config", "--rulesdir", "--plugin", "--parser", "--resolve-plugins-relative-to"),
    "prettier": ("--config", "--plugin"),
    "tsc": ("-p", "--project", "--plugins"),
    **dict.fromkeys(("tox", "nox"), ("-c", "-f", "-x", "--conf", "--noxfile", "--override", "--workdir", "--root")),
    "mvn": ("-D", "-f", "--file", "-s", "--settings", "-g"),
    "gradle": ("-D", "-P", "-I", "--init-script", "-b", "--build-file", "-p", "--project-dir", "-c", "--settings-file"),
    "dotnet": ("-s", "--settings", "--test-adapter-path", "--logger"),
}
"""Options of programs that check, build or test, by which they run other code or work elsewhere."""

_NAMES_PLACE = re.compile(r"[/~\\]|\.\.")


def find_uncovered_word(words: Sequence[str], count: int, folders: Sequence[Path]) -> str | None:
    """The first word after `count` ones of a rule that the rule doesn't cover; None if it covers all."""
    options = CHANGING_OPTIONS.get(_name_program(words), ())
    for word in words[count:]:
        if any(_is_option(word, option) for option in options):
            return word
        if folders and any(_leads_outside(one, folders) for one in _list_values(word)):
            return word
    return None


def _name_program(words: Sequence[str]) -> str:
    """The program's name; of `python -m pytest`, the module's."""
    name = words[0].rpartition("/")[2]
    return words[2] if name.rstrip("0123456789.") == "python" and words[1:2] == ("-m",) and len(words) > 2 else name


def _is_option(word: str, option: str) -> bool:
    if not word.startswith("-"):
        return False
    if len(option) == 2:
        # Short ones may be joined, with others or with their value.
        return not word.startswith("--") and option[1] in word.partition("=")[0][1:]
    name = word.partition("=")[0].lstrip("-")
    wanted = option.lstrip("-")
    # A long one may be abbreviated; go takes one dash for two.
    return name == wanted or (word.startswith("--") and len(name) > 1 and wanted.startswith(name))


def _list_values(word: str) -> Iterator[str]:
    """What of a word may name a place: all of it, the value of an option, or what is joined to its letter."""
    if not word.startswith("-"):
        yield word
    value = word.partition("=")[2]
    if value:
        yield value
    if word.startswith("-") and not word.startswith("--") and _NAMES_PLACE.search(word[2:]):
        yield word[2:]


def _leads_outside(value: str, folders: Sequence[Path]) -> bool:
    if not value:
        return False
    if "://" in value or value.startswith(("/", "~")):
        return find_path_outside(value, *folders) is not None
    # Where the command is by then isn't known here: the workspace is a good guess, and `..` may lead out of it.
    return find_path_outside(str(folders[0] / value), *folders) is not None
