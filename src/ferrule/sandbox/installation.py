"""What ferrule itself runs from: its interpreter, the packages installed for it, its own package.

Code written there runs uncontained at ferrule's next start: a `.pth` file is enough. So no command can write there
(`shell.protected_paths`) unless the user allows it; after that, this process starts no more zygotes.
"""

# Paths are strings here, as in the modules that use them.
# ruff: noqa: PTH100, PTH112, PTH116, PTH118, PTH119, PTH120

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Final

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.paths import follow_links, is_within, is_within_any
from ferrule.sandbox.visible_paths import SHARED_PREFIXES

__all__ = [
    "PACKAGE",
    "PACKAGE_FOLDERS",
    "Installation",
    "find_hard_links",
    "find_names",
    "make_boot_program",
    "record_opened_paths",
    "refuse_if_opened",
]

PACKAGE: Final = str(Path(__file__).parents[1])
"""The folder of ferrule's own package."""

_PREFIX_ENTRIES: Final = ("bin", "lib", sys.platlibdir, "Scripts", "pyvenv.cfg")
PACKAGE_FOLDERS: Final = ("site-packages", "dist-packages")
"""Names of the folders that packages are installed in."""
# Python imports them at start from any entry of its path.
_CUSTOMIZING: Final = ("sitecustomize", "usercustomize")
_opened: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Installation:
    """Absolute paths, some of which may not exist yet; a link is listed along with its target."""

    paths: tuple[str, ...]
    """Each with everything below it."""
    interpreters: tuple[str, ...]
    """Interpreters outside `paths`: a `pyvenv.cfg` next to one or above it would change its packages."""

    @classmethod
    def find(cls, workspace: str) -> Installation:
        """The running program's. If a prefix holds the workspace, only the folders that Python itself uses."""
        paths = _resolve_links(
            [*_find_prefix_paths(workspace), *_find_other_paths(), *_find_customizing_modules(workspace)]
        )
        programs = _resolve_links(path for path in (sys.executable, getattr(sys, "_base_executable", "")) if path)
        return cls(tuple(paths), tuple(path for path in programs if not is_within_any(path, paths)))


def _find_prefix_paths(workspace: str) -> Iterator[str]:
    for prefix in {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}.difference(SHARED_PREFIXES):
        if is_within(workspace, os.path.realpath(prefix)):
            yield from (os.path.join(prefix, name) for name in _PREFIX_ENTRIES)
        else:
            yield prefix


def _find_other_paths() -> Iterator[str]:
    """Paths outside the prefixes: the system Python's, the user's packages, those named by variables."""
    yield PACKAGE
    yield from (path for name in ("stdlib", "platstdlib") if (path := sysconfig.get_path(name)))
    yield from site.getsitepackages()
    if _has_user_packages():
        yield site.getusersitepackages()
    yield from (path for path in sys.path if os.path.basename(path) in PACKAGE_FOLDERS)
    if sys.pycache_prefix:
        yield os.path.abspath(sys.pycache_prefix)
    yield from filter(os.path.isabs, os.environ.get("LD_LIBRARY_PATH", "").split(":"))


def _find_customizing_modules(workspace: str) -> Iterator[str]:
    """What Python would import at start from other path entries, such as editable installs.

    An entry that is an archive or doesn't exist is returned itself. A script's own folder joins the path later.
    """
    entries = [os.path.realpath(entry) for entry in sys.path if entry]
    script = os.path.dirname(os.path.realpath(sys.argv[0])) if sys.argv[0] else ""
    if script in entries:
        entries.remove(script)
    entries += _read_pth_files()
    names = _CUSTOMIZING if _has_user_packages() else _CUSTOMIZING[:1]
    for entry in dict.fromkeys(entries):
        if not is_within(entry, workspace):
            continue
        if os.path.isdir(entry):
            yield from (os.path.join(entry, name + end) for name in names for end in ("", *all_suffixes()))
        else:
            yield entry


def _read_pth_files() -> Iterator[str]:
    """The entries that `.pth` files add to the path, missing ones included: once created, they count."""
    folders = {*site.getsitepackages(), site.getusersitepackages()}
    for file in (file for folder in folders for file in Path(folder).glob("*.pth")):
        with suppress(OSError, UnicodeDecodeError):
            lines = file.read_text(encoding="utf-8").splitlines()
            named = (line.strip() for line in lines if not line.startswith(("import ", "import\t", "#")))
            yield from (os.path.realpath(file.parent / line) for line in named if line and "\0" not in line)


def _has_user_packages() -> bool:
    return bool(site.ENABLE_USER_SITE) or sys.prefix == sys.base_prefix


def _resolve_links(paths: Iterable[str]) -> list[str]:
    """The real paths, and each link on the way to them."""
    found = {each for path in map(os.path.abspath, paths) for each in follow_links(path)}
    kept: list[str] = []
    for path in sorted(found.difference(SHARED_PREFIXES)):
        if not is_within_any(path, kept):
            kept.append(path)
    return kept


def find_hard_links(workspace: str, paths: Iterable[str]) -> list[str]:
    """Hard links in the workspace to installed files, as made by installers that link from a cache.

    Skipped if none of the installed packages was installed in that way.
    """
    return find_names(workspace, _find_linked_inodes(), set(paths))


def find_names(folder: str, devices: Mapping[int, int], left_out: Collection[str] = ()) -> list[str]:
    """The names below a folder of files that are given as devices by their inodes, except in what is left out."""
    found = [entry for entry in _walk_files(folder, left_out) if entry.inode() in devices] if devices else []
    # Only these few need a stat: an inode number is unique only within its device.
    return [entry.path for entry in found if _get_device(entry) == devices[entry.inode()]]


@cache
def _find_linked_inodes() -> dict[int, int]:
    """Devices of installed files by inode, for folders in which some packages are hard-linked."""
    found: dict[int, int] = {}
    for folder in {os.path.realpath(path) for path in (*site.getsitepackages(), PACKAGE)}:
        samples = (*Path(folder).glob("*.dist-info/METADATA"), Path(folder, "__init__.py"))
        if any(map(_has_other_names, samples)):
            device = os.stat(folder).st_dev
            found |= {entry.inode(): device for entry in _walk_files(folder)}
    return found


def _walk_files(folder: str, left_out: Collection[str] = ()) -> Iterator[os.DirEntry[str]]:
    waiting = [folder]
    while waiting:
        folder = waiting.pop()
        if folder in left_out:
            continue
        with suppress(OSError):
            for entry in os.scandir(folder):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.path not in left_out:
                    yield entry


def _get_device(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_dev
    except OSError:
        return -1


def _has_other_names(path: Path) -> bool:
    try:
        return path.stat().st_nlink > 1
    except OSError:
        return False


def record_opened_paths(paths: Sequence[str], setting: str) -> None:
    """Record for the life of this process that commands can write there, and which setting allows it."""
    _opened.update(dict.fromkeys(paths, setting))


def refuse_if_opened() -> None:
    """Raise `SandboxUnavailable` if a zygote would run what commands may have written."""
    if _opened:
        path, setting = next(iter(_opened.items()))
        raise SandboxUnavailable(
            f"can't start a Python sandbox: commands can write {path}, which its interpreter runs from, since "
            f"{setting} allowed it in this process. Run Python in a separate process, from an environment that no "
            "command can write, or remove the setting"
        )


def make_boot_program(program: str) -> str:
    """The source of a program that first loads ferrule's own package, ignoring its sibling files."""
    return (
        "import sys; from importlib.util import module_from_spec, spec_from_file_location; "
        f"spec = spec_from_file_location('ferrule', {PACKAGE + '/__init__.py'!r}); "
        "sys.modules['ferrule'] = package = module_from_spec(spec); spec.loader.exec_module(package); "
        f"del spec, package; {program}"
    )
