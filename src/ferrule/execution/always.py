"""What an "always" answer allows: the narrowest sensible rules for a call, and where a session keeps them."""

from __future__ import annotations

import json
import os
import shlex
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ferrule.errors import choose_advice
from ferrule.execution.command_scope import find_uncovered_word
from ferrule.execution.profiles import list_folders
from ferrule.execution.rule_matching import escape_pattern, find_effect_outside, make_folder_pattern
from ferrule.execution.rules import PolicySubject, Rule, is_of_server, write_definition
from ferrule.sandbox.wrapper_programs import CHANGING_RIGHTS, SHELLS, WRAPPERS
from ferrule.tools.intent import Effect, Intent


@dataclass(frozen=True, slots=True)
class Always:
    """The rules that an "always" answer adds, and a description of their scope for the person who gives it."""

    scope: str
    rules: tuple[Rule, ...]


@dataclass(slots=True, eq=False)
class SessionGrants:
    """The rules that "always" answers add in a session.

    They apply to every run and executor whose `Policy` has this object, and to copies of it by `dataclasses.replace`.
    `save` keeps an answer for later sessions in the same project; it may raise `FerruleError` and `OSError`.
    Thread-safe.
    """

    rules: tuple[Rule, ...] = ()
    """The rules so far, without duplicates, in the order in which they were added."""
    save: Callable[[Always], None] | None = None
    answers: tuple[Always, ...] = ()
    """The answers of this session, without duplicates, in order."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def add(self, always: Always) -> None:
        """Add the rules of one answer."""
        with self._lock:
            self.rules += tuple(rule for rule in always.rules if rule not in self.rules)
            if always not in self.answers:
                self.answers += (always,)


def write_rule(rule: Rule) -> str:
    """Write a rule on one line, as `ferrule.toml` would have it; the tool's location and definition are left out."""
    written = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in _list_fields(rule).items()]
    return f"{{ {', '.join(written)} }}"


def _list_fields(rule: Rule) -> dict[str, str | bool]:
    values = {
        "action": rule.action,
        "tool": rule.tool if rule.tool != "*" else None,
        "command": rule.command,
        "exact": rule.exact or None,
        "effect": rule.effect,
        "target": rule.target,
    }
    return {name: value for name, value in values.items() if value is not None}


def write_policy_line(rules: Iterable[str]) -> str:
    """Write the line of a policy file that has these rules, each as `write_rule` writes it."""
    return f"rules = [{', '.join(rules)}]"


def advise_allowing(always: Always | None) -> str:
    """Advise how to allow a call that nobody could be asked about; `always` is what an "always" to it would allow."""
    if always is None:
        return choose_advice("pass an approver", "run the command at a terminal")
    given = [", ".join(f"{name}={value!r}" for name, value in _list_fields(rule).items()) for rule in always.rules]
    return choose_advice(
        f"pass policy=Policy([{', '.join(f'Rule({one})' for one in given)}]), or an approver",
        f"the policy's line for this one: {write_policy_line(map(write_rule, always.rules))}",
    )


def derive_always(
    tool: PolicySubject, intent: Intent | None, trusted: bool, workspace: Path | str | None = None
) -> Always | None:
    """Derive what an "always" to this call would allow; None if nothing sensible would be narrow enough.

    Without effects, or with effects claimed by an untrusted origin, that is every call of the tool; of a server's tool,
    as long as the server doesn't change its definition. With effects it is calls that do no more than this one:

    - A program stands for its exact words, one of `SUBCOMMANDS` for the words up to its subcommand. Code, programs
      that remove, gain rights or run any other program, and commands whose words aren't known give None.
    - A path stands for its folder and everything below, if that is inside the workspace and not the whole of it; else
      for itself. What a command writes by a redirection stands for itself; writing outside by a command gives None.
    """
    base, defined = Rule("allow", escape_pattern(tool.name), location=getattr(tool, "location", None)), ""
    if is_of_server(tool):
        base, defined = replace(base, definition=write_definition(tool)), " as the server defines it now"
    if intent is None or not intent.effects or not trusted:
        return Always(f"every call of {tool.name}{defined}", (base,))
    is_command, folders = any(effect.words for effect in intent.effects), list_folders(tool, workspace)
    rules: list[Rule] = []
    scopes: dict[str, list[str]] = {}
    for effect in intent.effects:
        if effect.words:
            derived = _derive_for_program(base, effect, folders)
        else:
            derived = _derive_for_target(base, effect, is_command, folders)
        if derived is None:
            return None
        rule, scope = derived
        does = scopes.setdefault(scope, [])
        if rule not in rules:
            rules.append(rule)
            does += [_DOES[effect.kind]] if effect.words else []
    shown = (f"{scope} ({', '.join(does)})" if does else scope for scope, does in scopes.items())
    return Always(f"{tool.name}: {', '.join(shown)}", tuple(rules))


def _derive_for_target(
    base: Rule, effect: Effect, is_command: bool, folders: Sequence[Path]
) -> tuple[Rule, str] | None:
    is_write = effect.kind == "write"
    if effect.kind == "run" or (is_write and effect.is_protected):
        return None
    is_file = effect.kind in ("read", "write")
    is_outside = find_effect_outside(effect, folders) is not None
    if is_command and is_write and is_outside:
        return None
    if is_file and not effect.target.strip("/"):
        return None  # of a command: a path that isn't known
    target = make_folder_pattern(effect)
    if is_outside or (is_file and ((is_write and is_command) or _is_in_root(effect, folders))):
        target = escape_pattern(effect.target)
    return replace(base, effect=effect.kind, target=target), f"{effect.kind} {target}"


def _is_in_root(effect: Effect, folders: Sequence[Path]) -> bool:
    """Whether a file is in no folder of the workspace but the workspace itself, or is that."""
    roots, real = {os.path.realpath(folder) for folder in folders}, os.path.realpath(effect.target)
    return real in roots or os.path.dirname(real) in roots  # noqa: PTH120 - a text already


def _derive_for_program(base: Rule, effect: Effect, folders: Sequence[Path]) -> tuple[Rule, str] | None:
    words = effect.words
    program = words[0].rpartition("/")[2]
    if program in NEVER or _runs_given_code(program, words):
        return None
    if effect.kind == "write" and find_effect_outside(effect, folders) is not None:
        return None
    length = _count_vetted_words(words)
    if length and find_uncovered_word(words, length, folders) is not None:
        length = 0  # only exactly this
    kept = words[:length] if length else words
    command = " ".join(shlex.quote(escape_pattern(word)) for word in kept)
    rule = replace(base, effect=effect.kind, command=command, exact=not length)
    return rule, f"{shlex.join(kept)}{' …' if length else ''}"


def _count_vetted_words(words: tuple[str, ...]) -> int:
    """How many words an "always" keeps of a program in `SUBCOMMANDS`; 0 for any other."""
    allowed = SUBCOMMANDS.get(words[0])
    if allowed is None:
        return 0
    if not allowed:
        return 1
    return next((size for size in (3, 2) if " ".join(words[1:size]) in allowed), 0)


def _runs_given_code(program: str, words: tuple[str, ...]) -> bool:
    """Whether an interpreter gets its code as an argument or from its input, and not from a file or a module."""
    if program.rstrip("0123456789.") not in _INTERPRETERS:
        return False
    if len(words) == 1 or words[1] == "eval":
        return True
    return words[1].startswith("-") and words[1] != "-m"


_PYTHON_MODULES = ("-m pytest", "-m unittest", "-m mypy")

SUBCOMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "git": ("status", "diff", "log", "show", "blame", "ls-files", "rev-parse", "describe", "add", "commit"),
    "npm": ("test", "ls", "run test", "run build", "run lint"),
    "yarn": ("test", "run test", "run build", "run lint"),
    "pnpm": ("test", "run test", "run build", "run lint"),
    "cargo": ("build", "test", "check", "clippy", "fmt", "tree"),
    "go": ("build", "test", "vet", "fmt", "list"),
    "ruff": ("check", "format"),
    "dotnet": ("build", "test"),
    "mvn": ("test", "compile"),
    "gradle": ("test", "build"),
    "python": _PYTHON_MODULES,
    "python3": _PYTHON_MODULES,
    **dict.fromkeys(("pytest", "tox", "nox", "mypy", "pyright", "black", "isort", "flake8"), ()),
    **dict.fromkeys(("eslint", "prettier", "tsc"), ()),
}
"""Programs, with their subcommands, for which an "always" includes any further words: they check, build or test the
workspace, or show it. The kind of effect stays that of the call: an "always" for a `git diff` that reads never covers
one that writes. `command_scope.py` has what isn't covered.
"""

_REMOVERS = ("rm", "rmdir", "shred", "unlink", "dd", "truncate", "mkfs")
_PARSED_WRAPPERS = tuple(name for name, wrapper in WRAPPERS.items() if wrapper.options is not None)
_RUNNERS = ("builtin", "source", ".", "parallel", "watch", "script", "strace", "ssh", "awk", "gawk", "mawk", "nawk")

NEVER = frozenset((*_REMOVERS, *CHANGING_RIGHTS, *SHELLS, *_PARSED_WRAPPERS, *_RUNNERS))
"""Programs for which there is no "always": they remove, gain rights, or run whatever they are given."""

_INTERPRETERS = frozenset(("python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "Rscript"))

_DOES = {"read": "reads", "write": "writes", "run": "runs", "net": "reaches the network"}
