"""What a whole run of the corpus aims at: one secret, wherever a host keeps secrets, and descriptors left open."""

import contextlib
import ctypes
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
SECRET_NAME = "ESCAPE_API_KEY"
# Where the host's side lies; `enter` makes a better place where it can.
PLACE = os.environ.get("ESCAPES_PLACE", "/var/tmp")


@dataclass(frozen=True, slots=True)
class World:
    """The secret and where it is."""

    secret: str
    folder: Path
    """A folder of the host that holds everything else."""

    inherited: tuple[int, ...]
    """Descriptors that a child inherits if nobody closes them: the secret's file, its folder, another, one to write."""

    signals: list[int]
    """The signals that this process received."""

    @property
    def secret_file(self) -> Path:
        """A file with the secret in it."""
        return self.folder / "secrets" / "secret.txt"

    @property
    def open_file(self) -> Path:
        """The file that the last inherited descriptor writes to."""
        return self.folder / "open" / "inherited.txt"


@contextmanager
def world() -> Iterator[World]:
    """Put the secret, which this process's environment holds, everywhere else too, and take it away afterwards."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    folder = Path(tempfile.mkdtemp(prefix="ferrule-escapes-", dir=PLACE))
    secret = os.environ[SECRET_NAME]
    (folder / "secrets").mkdir()
    (folder / "open").mkdir()
    (folder / "open" / "inherited.txt").write_text("untouched")
    (folder / "secrets" / "secret.txt").write_text(secret)
    os.setxattr(folder / "secrets" / "secret.txt", "user.secret", secret.encode())
    _fill_home(folder / "home", secret)
    os.environ["HOME"] = str(folder / "home")
    opened = [
        (folder / "secrets" / "secret.txt", os.O_RDONLY),
        (folder / "secrets", os.O_RDONLY),
        (folder / "open", os.O_RDONLY),
        (folder / "open" / "inherited.txt", os.O_RDWR),
    ]
    inherited = tuple(os.open(path, flags) for path, flags in opened)
    for descriptor in inherited:
        os.set_inheritable(descriptor, True)
    received: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _: received.append(number))
    try:
        yield World(secret, folder, inherited, received)
    finally:
        for descriptor in inherited:
            os.close(descriptor)
        remove(folder)


def remove(folder: Path) -> None:
    """Delete a folder, also one that is shut, or nested deeper than Python's own way can go."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
        return
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], stderr=subprocess.DEVNULL, check=False)
    subprocess.run(["rm", "-rf", str(folder)], stderr=subprocess.DEVNULL, check=False)


def make_database(path: Path, secret: str) -> None:
    """A database with the secret in a table."""
    database = sqlite3.connect(path)
    database.execute("create table secrets (secret text)")
    database.execute("insert into secrets values (?)", (secret,))
    database.commit()
    database.close()


def _fill_home(home: Path, secret: str) -> None:
    for name in (".ssh/id_ed25519", ".config/service/settings.toml", ".aws/credentials"):
        path = home / name
        path.parent.mkdir(parents=True)
        path.write_text(f"key = {secret}\n")
