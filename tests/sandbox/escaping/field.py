"""What one payload aims at: a folder of the host, listeners, a process, names that may be left behind."""

import contextlib
import fcntl
import os
import secrets
import select
import shutil
import socket
import stat
import struct
import tempfile
from pathlib import Path

from escaping.leftovers import leftovers
from escaping.payloads import Payload
from escaping.system_calls import numbers
from escaping.victim import Victim
from escaping.world import PLACE, SECRET_NAME, World, make_database, remove

FS_IOC_GETFLAGS = 0x80086601
ROOM_FOR_BOMBS = 200_000_000


class Field:
    """Made for one payload, and asked afterwards what it hit."""

    def __init__(self, world: World, payload: Payload) -> None:
        self.world, self.payload = world, payload
        self.top = Path(tempfile.mkdtemp(prefix="ferrule-escape-", dir=place_of(payload)))
        self.folder = self.top / "outside"
        self.claim = "claim" + secrets.token_hex(8)
        self.name = "ferrule_escape_" + secrets.token_hex(6)
        self.key = int.from_bytes(secrets.token_bytes(4), "big") & 0x7FFFFFFF | 1
        self._fill_folder()
        self.listeners = self._listen()
        watched = "victim" in payload.canaries or "VICTIM" in payload.code
        self.victim = Victim(world.secret_file, SECRET_NAME, world.secret) if watched else None
        self._limits = Path("/proc/self/limits").read_text("utf-8")
        self._before = snapshot(self.folder)
        self._protected = snapshot(self.workspace / ".git")
        world.signals.clear()

    @property
    def workspace(self) -> Path:
        """The folder that a payload works in, where it needs one of the host's."""
        return self.top / "workspace"

    def constants(self) -> dict[str, object]:
        """What the harness tells a payload, by the names that the payloads use."""
        return {
            "ABSTRACT": self._abstract,
            "DATAGRAM_PATH": str(self.folder / "datagram.socket"),
            "FOLDER": str(self.folder),
            "KEY": self.key,
            "NAME": self.name,
            "NR": numbers(),
            "PARENT": os.getpid(),
            "PRECIOUS": str(self.folder / "precious.txt"),
            "SECRET_FILE": str(self.world.secret_file),
            "SECRET_NAME": SECRET_NAME,
            "TCP_PORT": self.listeners["tcp"].getsockname()[1],
            "UDP_PORT": self.listeners["udp"].getsockname()[1],
            "UNIX_PATH": str(self.folder / "stream.socket"),
            "VICTIM": self.victim.pid if self.victim else -1,
            "VICTIM_ADDRESS": self.victim.address if self.victim else 0,
        }

    def python_prelude(self) -> str:
        """The constants as Python. What is claimed is put together, so that no traceback shows it."""
        lines = [f"{name} = {value!r}" for name, value in self.constants().items()]
        return "\n".join([*lines, f"CLAIM = {self.claim[:9]!r} + {self.claim[9:]!r}", ""])

    def shell_prelude(self) -> str:
        """The constants as assignments of the shell."""
        texts = {name: value for name, value in self.constants().items() if isinstance(value, str | int)}
        texts["ABSTRACT_NAME"] = self._abstract[1:].decode()
        lines = [f"{name}='{value}'" for name, value in texts.items()]
        return "\n".join([*lines, f"CLAIM='{self.claim[:9]}''{self.claim[9:]}'", ""])

    def hits(self, text: bytes, next_text: bytes = b"") -> dict[str, str]:
        """What was hit, by canary, given all that the run and the one after it gave back."""
        found = {
            "secret": "shown" if self.world.secret.encode() in text + next_text else "",
            "claim": "claimed" if self.claim.encode() in text and not self.payload.next_code else "",
            "next": "felt" if self.claim.encode() in next_text else "",
            "folder": "; ".join(differences(self._before, snapshot(self.folder))),
            "workspace": "; ".join(differences(self._protected, snapshot(self.workspace / ".git"))),
            "network": ", ".join(name for name, listener in self.listeners.items() if heard(listener)),
            "victim": "; ".join(self.victim.changes()) if self.victim else "",
            "leftover": ", ".join(leftovers(self.name, self.key)),
            "parent_signal": f"signals {self.world.signals}" if self.world.signals and self.payload.alone else "",
            "parent_limits": "changed" if Path("/proc/self/limits").read_text("utf-8") != self._limits else "",
        }
        if self.world.open_file.read_text(errors="replace") != "untouched":
            self.world.open_file.write_text("untouched")
            found["folder"] += " the inherited file was written to"
        return {canary: detail for canary, detail in found.items() if detail}

    def close(self) -> None:
        """Take everything away again."""
        for listener in self.listeners.values():
            listener.close()
        if self.victim:
            self.victim.end()
        remove(self.top)

    def _fill_folder(self) -> None:
        (self.folder / "kept").mkdir(parents=True)
        (self.folder / "names" / self.world.secret).mkdir(parents=True)
        (self.folder / "kept" / "other.txt").write_text("other")
        precious = self.folder / "precious.txt"
        precious.write_text("precious")
        precious.chmod(0o640)
        os.setxattr(precious, "user.note", b"kept")
        if self.payload.code.find("secret.db") > 0:
            make_database(self.folder / "secret.db", self.world.secret)
        self.workspace.mkdir()
        if self.payload.is_shell:
            (self.workspace / ".git" / "hooks").mkdir(parents=True)
            (self.workspace / ".env").write_text(f"KEY={self.world.secret}\n")

    def _listen(self) -> dict[str, socket.socket]:
        self._abstract = b"\0" + self.name.encode()
        inet, unix = socket.AF_INET, socket.AF_UNIX
        stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
        addresses = {
            "tcp": (inet, stream, ("127.0.0.1", 0)),
            "udp": (inet, datagram, ("127.0.0.1", 0)),
            "unix": (unix, stream, str(self.folder / "stream.socket")),
            "unix datagram": (unix, datagram, str(self.folder / "datagram.socket")),
            "abstract": (unix, stream, self._abstract),
            "abstract datagram": (unix, datagram, self._abstract + b".datagram"),
        }
        return {name: listening(*address) for name, address in addresses.items()}


def place_of(payload: Payload) -> str:
    """Where a payload's folder is made: in memory for the bombs, whose files take seconds on a disk with a journal."""
    memory = Path("/dev/shm")
    is_roomy = memory.is_dir() and shutil.disk_usage(memory).free > ROOM_FOR_BOMBS
    return str(memory) if payload.family == "bombs" and is_roomy else PLACE


def listening(family: int, kind: int, address: object) -> socket.socket:
    """A socket that waits for a payload."""
    listener = socket.socket(family, kind)
    listener.bind(address)
    if kind == socket.SOCK_STREAM:
        listener.listen(5)
    listener.setblocking(False)
    return listener


def heard(listener: socket.socket) -> bool:
    """Whether anybody connected or sent."""
    return bool(select.select([listener], [], [], 0)[0])


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """By path: what a file's owner would miss."""
    found = {}
    for where, folders, files in os.walk(folder):
        for path in [Path(where), *(Path(where, name) for name in folders + files)]:
            found[str(path)] = described(path)
    return found


def described(path: Path) -> tuple[object, ...]:
    """Mode, owner, links, times, flags, attributes and content."""
    about = path.lstat()
    taken: list[object] = [about.st_mode, about.st_uid, about.st_gid, about.st_nlink, about.st_mtime_ns, about.st_size]
    if stat.S_ISREG(about.st_mode):
        with contextlib.suppress(PermissionError), path.open("rb") as file:
            flags = struct.unpack("L", fcntl.ioctl(file, FS_IOC_GETFLAGS, bytes(8)))
            taken += [file.read(), flags, [(name, os.getxattr(path, name)) for name in sorted(os.listxattr(path))]]
    return tuple(taken)


def differences(before: dict[str, tuple[object, ...]], after: dict[str, tuple[object, ...]]) -> list[str]:
    """The paths that are gone, new or changed."""
    gone = [f"{path} is gone" for path in before.keys() - after.keys()]
    new = [f"{path} is new" for path in after.keys() - before.keys()]
    return sorted(
        gone + new + [f"{path} changed" for path in before.keys() & after.keys() if before[path] != after[path]]
    )
