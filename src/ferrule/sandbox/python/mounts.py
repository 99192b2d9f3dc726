"""`Mount`: a file of the host that model-written code may read without a copy."""

# Paths are strings here, as in `hidden_paths`.
# ruff: noqa: PTH100, PTH112

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ferrule.errors import SandboxInputError
from ferrule.sandbox.hidden_paths import HIDDEN, HiddenPaths, holds_private_key
from ferrule.sandbox.mounted_files import MountedFile
from ferrule.sandbox.paths import LinkFollower, is_within_any
from ferrule.sandbox.python.parent.answer import is_safe_name
from ferrule.sandbox.regular_files import open_regular_file

__all__ = ["Mount", "read_mounts", "resolve_mounts"]

_SYSTEM_FOLDERS: Final = ("/dev", "/proc", "/run", "/sys")
_PRIVATE: Final = ".private"
_MAX_MOUNTS: Final = 100


@dataclass(frozen=True, slots=True)
class Mount:
    """A file of any size that code reads in place and can't change.

    `path` is resolved to the real file when a run or a session begins. `name` is the file's relative path in the
    code's folder, or None for its own name.
    """

    path: Path | str
    name: str | None = None

    @property
    def shown_name(self) -> str:
        """The name in the code's folder."""
        return Path(self.path).name if self.name is None else self.name


def read_mounts(given: Iterable[Mount | str | os.PathLike[str]]) -> tuple[Mount, ...]:
    """Read mounts, of which a path alone has its own name. Raises `SandboxInputError` for anything else."""
    if isinstance(given, str | os.PathLike | Mount):
        given = (given,)
    mounts: list[Mount] = []
    for one in given:
        if isinstance(one, str | os.PathLike):
            one = Mount(Path(one))  # noqa: PLW2901
        if not isinstance(one, Mount) or isinstance(given, Mapping):
            raise SandboxInputError(f"mounts must be paths or Mount(path, name), not {given!r}")
        mounts.append(one)
    return tuple(mounts)


def resolve_mounts(mounts: Iterable[Mount], taken: Iterable[str] = ()) -> tuple[MountedFile, ...]:
    """Resolve mounts to the present files. The names `taken` belong to files that are written to the same folder.

    Raises `SandboxInputError` for a file that is missing, not regular or hidden from shell commands (`HIDDEN`: keys,
    tokens, `.env`), and for a name that is unsafe or taken.
    """
    found: dict[str, MountedFile] = {}
    names = set(taken)
    hidden = HiddenPaths.parse(HIDDEN, "/")
    for mount in mounts:
        name = mount.shown_name
        if not isinstance(name, str) or not is_safe_name(name) or name.split("/")[0] == _PRIVATE:
            raise SandboxInputError(f"a mount's name must be a relative path without `..`, not {name!r}")
        if any(_conflicts(name, other) for other in names):
            raise SandboxInputError(f"mounts[{name!r}]: the name conflicts with another file or its folder")
        names.add(name)
        if len(found) == _MAX_MOUNTS:
            raise SandboxInputError(f"more than {_MAX_MOUNTS} mounts: combine files that are read together")
        found[name] = _resolve(mount, name, hidden)
    return tuple(found.values())


def _resolve(mount: Mount, name: str, hidden: HiddenPaths) -> MountedFile:
    given = os.fspath(mount.path)
    if not isinstance(given, str) or not given or "\0" in given:
        raise SandboxInputError(f"mounts[{name!r}]: {given!r} isn't a path")
    try:
        real = os.path.realpath(given, strict=True)
        if _is_hidden(os.path.abspath(given), hidden) or _is_hidden(real, hidden):
            raise SandboxInputError(f"mounts[{name!r}]: {given} is hidden from model-written code: see HIDDEN")
        with open_regular_file(real) as descriptor:
            if descriptor is None:
                raise SandboxInputError(f"mounts[{name!r}]: {given} is not a regular file: mount each file by itself")
            status = os.fstat(descriptor)
    except OSError as error:
        raise SandboxInputError(f"mounts[{name!r}]: {error}") from None
    return MountedFile(name, real, status.st_dev, status.st_ino)


def _is_hidden(path: str, hidden: HiddenPaths) -> bool:
    """Check whether a path is hidden from shell commands: by its folder, its name, or the name of a parent folder."""
    if is_within_any(path, _SYSTEM_FOLDERS) or is_within_any(path, hidden.find_existing(LinkFollower())):
        return True
    parts = path.split("/")
    return any(
        hidden.names.match(part) and not _is_harmless("/".join(parts[: number + 1]))
        for number, part in enumerate(parts)
        if part
    )


def _is_harmless(path: str) -> bool:
    """Check for the exceptions of the workspace scan: virtual environments, and certificates without a key."""
    if os.path.isdir(path):
        return os.path.lexists(f"{path}/pyvenv.cfg")
    return path.lower().endswith(".pem") and not holds_private_key(path)


def _conflicts(name: str, other: str) -> bool:
    return name == other or name.startswith(f"{other}/") or other.startswith(f"{name}/")
