"""The name and origin of a server, derived from the program or package that its command runs, or from its host.

Arguments of a command may be secrets, so only a word that is known to be the program's own name is used: behind an
option that isn't in the tables below, it is the name of the launcher.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ferrule.errors import SettingsError
from ferrule.execution.secrets import scrub_secrets, scrub_text
from ferrule.formats.tool_offers import ToolNames
from ferrule.mcp.target import ServerTarget
from ferrule.toolspec import ToolSpec

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,31}")
_LONGEST = 32
_DIGITS = 16
"""Hexadecimal digits that bind an origin: as many as make it impractical to find another command or address."""
_SUFFIXES = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh")
_VERSIONED = re.compile(r"(python|pypy)[\d.]*")
_PACKAGE = re.compile(r"(?:@[\w.-]+/)?([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]*\])?(?:[@=<>~!].*)?")
_IMAGE = re.compile(r"(?:[\w.-]+(?::\d+)?/)*([\w.-]+)(?::[\w.-]+)?(?:@\w+:\w+)?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_MODULE = re.compile(r"\w+(?:\.\w+)*")
_LOOPBACK = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class _Launcher:
    """How a launcher's command line leads to the program: its options without and with a value, and its subcommands."""

    flags: frozenset[str]
    valued: frozenset[str]
    subcommands: tuple[tuple[str, ...], ...] = ((),)
    package: re.Pattern[str] | None = None
    """How a package or image is written, with its name as the group; None for a launcher of programs and files."""
    starts_command: bool = False
    """Whether another launcher may follow."""
    module_option: str = ""
    """The option whose value is a Python module to run."""


@dataclass(frozen=True, slots=True)
class _Program:
    """The program of a command line: the position of its word, its name, and whether the word is a path."""

    index: int
    name: str
    is_path: bool


def _describe(
    flags: str,
    valued: str,
    subcommands: Sequence[str] = ("",),
    package: re.Pattern[str] | None = None,
    starts_command: bool = False,
    module_option: str = "",
) -> _Launcher:
    ways = tuple(tuple(one.split()) for one in subcommands)
    return _Launcher(frozenset(flags.split()), frozenset(valued.split()), ways, package, starts_command, module_option)


_NPX = _describe(
    "-y --yes --no -q --quiet --offline --prefer-offline --prefer-online --bun --verbose --silent",
    "-p --package --registry --cache --userconfig --prefix -w --workspace --loglevel",
    package=_PACKAGE,
)
_UV_FLAGS = (
    "-q --quiet -v --verbose -n --no-cache --offline --isolated --no-config --refresh --no-progress --no-sync --frozen "
    "--locked --no-project --all-extras --no-dev --native-tls --managed-python --no-managed-python -U --upgrade"
)
_URLS = " ".join(f"{name}-url" for name in ("--index", "--extra-index"))
_UV_VALUED = (
    f"--from --with --with-editable --with-requirements -p --python --index --default-index -i {_URLS} "
    f"-f {'-'.join(('--find', 'links'))} --cache-dir --directory --project --config-file --env-file --extra --group "
    "--package --index-strategy --keyring-provider --prerelease --resolution --exclude-newer"
)
_DOCKER = _describe(
    "-i --interactive -t --tty -d --detach -q --quiet -P --publish-all --rm --init --privileged --read-only "
    "--no-healthcheck --oom-kill-disable --sig-proxy",
    "-a --attach -c --cpu-shares -e --env --env-file -v --volume --volumes-from --mount --tmpfs -p --publish --expose "
    "--name --network --net --ip --dns --link --add-host -h --hostname -u --user -w --workdir --entrypoint --platform "
    "--pull -l --label --label-file -m --memory --memory-swap --cpus --cpuset-cpus --gpus --device --cap-add "
    "--cap-drop --security-opt --ulimit --pids-limit --shm-size --restart --runtime --userns --ipc --pid --log-driver "
    "--log-opt --stop-signal --stop-timeout --cidfile --group-add --secret",
    subcommands=("run", "container run"),
    package=_IMAGE,
)
_LAUNCHERS = {
    "env": _describe("-i --ignore-environment -0 --null -v --debug", "-u --unset -C --chdir", starts_command=True),
    "python": _describe("-u -B -I -E -s -S -O -P -q -v -b -d -x", "-W -X", module_option="-m"),
    "node": _describe(
        "--no-warnings --enable-source-maps --inspect --inspect-brk --experimental-vm-modules",
        "-r --require --import --loader --experimental-loader -C --conditions",
    ),
    "bun": _describe("--bun --silent --smol --hot --watch", "--cwd", subcommands=("", "run", "x")),
    "deno": _describe("-A --allow-all -q --quiet --no-check --unstable -R -W -N -E", "", subcommands=("", "run")),
    "npx": _NPX,
    "bunx": _NPX,
    "npm": _describe(" ".join(_NPX.flags), " ".join(_NPX.valued), subcommands=("exec", "x"), package=_PACKAGE),
    "pnpm": _describe("-s --silent", "--package -C --dir", subcommands=("dlx",), package=_PACKAGE),
    "yarn": _describe("-q --quiet", "-p --package --cwd", subcommands=("dlx",), package=_PACKAGE),
    "pipx": _describe("-q --quiet -v --verbose --no-cache", f"--spec --python {_URLS} -i", subcommands=("run",)),
    "uvx": _describe(_UV_FLAGS, _UV_VALUED, package=_PACKAGE),
    "uv": _describe(_UV_FLAGS, _UV_VALUED, subcommands=("run", "tool run"), starts_command=True, module_option="-m"),
    "docker": _DOCKER,
    "podman": _DOCKER,
}


def choose_name(target: ServerTarget, given: str | None) -> str:
    """Choose the name of a server: the given one, or one derived from its command or address. Raises `SettingsError`.

    It is never the one that the server gives itself, since policies trust servers by name.
    """
    if given is not None:
        if not _NAME.fullmatch(given):
            raise SettingsError(
                f"the name {given!r} of an MCP server: write 1 to 32 letters, digits, '_' or '-', a letter or '_' first"
            )
        return given
    if target.url is not None:
        host = urlsplit(target.url).hostname or ""
        found = "localhost" if host in _LOOPBACK else host
    else:
        found = _find_program(target.command).name
    return ToolNames([ToolSpec(found, "", {})]).encode(found)[:_LONGEST]


def make_origin(target: ServerTarget, name: str, is_given: bool) -> str:
    """The origin of a server's tools. A derived name isn't unique, so it is bound to the command or address by a hash.

    Secrets that are recognized don't count in the hash; a relative path of the program counts as an absolute one.
    """
    if is_given:
        return f"mcp:{name}"
    if target.url is not None:
        words = [scrub_text(target.url, None)]
    else:
        words = scrub_secrets(list(target.command), None)
        program = _find_program(target.command)
        if program.is_path:
            words[program.index] = str(Path(target.cwd or "", target.command[program.index]).absolute())
    digest = hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()
    return f"mcp:{name}@{digest[:_DIGITS]}"


def _find_program(command: Sequence[str], start: int = 0) -> _Program:
    """Find the program that a command runs, behind the launchers that are known."""
    own = command[start].rstrip("/").rpartition("/")[2]
    versioned = _VERSIONED.fullmatch(own)
    launcher = _LAUNCHERS.get("python" if versioned else own)
    found = None if launcher is None else _find_launched(launcher, command, start + 1)
    return found or _Program(start, _remove_suffix(own), "/" in command[start])


def _find_launched(launcher: _Launcher, command: Sequence[str], index: int) -> _Program | None:
    """Find what a launcher runs; None behind anything that its table doesn't have."""
    passed: tuple[str, ...] = ()
    may_be_option = True
    while index < len(command):
        word = command[index]
        if may_be_option and word.startswith("-") and len(word) > 1:
            if word == launcher.module_option:
                return _read_module(command, index + 1)
            skipped = _count_option_words(launcher, word)
            if not skipped:
                return None
            may_be_option = word != "--"
            index += skipped
        elif launcher.starts_command and not passed and _ASSIGNMENT.match(word):
            index += 1
        elif any(way[: len(passed) + 1] == (*passed, word) for way in launcher.subcommands):
            passed = (*passed, word)
            index += 1
        elif passed not in launcher.subcommands:
            return None
        elif launcher.package is not None:
            package = launcher.package.fullmatch(word)
            return package and _Program(index, package[1], False)
        elif launcher.starts_command:
            return _find_program(command, index)
        else:
            return _Program(index, _remove_suffix(word.rstrip("/").rpartition("/")[2]), "://" not in word)
    return None


def _count_option_words(launcher: _Launcher, word: str) -> int:
    """How many words an option takes, with its value; 0 if it isn't known."""
    if word == "--" or word in launcher.flags or (word.startswith("--") and "=" in word):
        return 1
    if word in launcher.valued:
        return 2
    if word.startswith("--"):
        return 0
    for position, letter in enumerate(word[1:], 2):
        if f"-{letter}" in launcher.valued:
            return 2 if position == len(word) else 1
        if f"-{letter}" not in launcher.flags:
            return 0
    return 1


def _read_module(command: Sequence[str], index: int) -> _Program | None:
    word = command[index] if index < len(command) else ""
    return _Program(index, word, False) if _MODULE.fullmatch(word) else None


def _remove_suffix(name: str) -> str:
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name
