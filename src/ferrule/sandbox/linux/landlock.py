"""Landlock: restricts a process's access to the file system, TCP, signals and abstract sockets.

Rulesets handle every right in the kernel's ABI, so whatever no rule grants is refused. Rights that are never granted
(creating devices, sockets and pipes) have no name here.
"""

import os
import stat
import struct
from typing import Final

from ferrule.sandbox.linux.syscalls import PreparedCall, call, invoke, prepare_call

__all__ = ["EXECUTE", "LIST", "MAKE_SYMLINK", "READ", "WRITE", "WRITE_FILE", "Ruleset", "read_abi"]

EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
LIST: Final = 1 << 3
_REMOVE_FOLDER: Final = 1 << 4
_REMOVE_FILE: Final = 1 << 5
_MAKE_FOLDER: Final = 1 << 7
_MAKE_FILE: Final = 1 << 8
MAKE_SYMLINK: Final = 1 << 12
_REFER: Final = 1 << 13  # link or rename to another folder
_TRUNCATE: Final = 1 << 14
_IOCTL_DEVICE: Final = 1 << 15

READ: Final = _READ_FILE | LIST
WRITE: Final = WRITE_FILE | _REMOVE_FOLDER | _REMOVE_FILE | _MAKE_FOLDER | _MAKE_FILE | _REFER | _TRUNCATE
_ON_FILES: Final = EXECUTE | WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE

_RIGHTS_OF_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_ALL_RIGHTS: Final = (1 << 16) - 1
_TCP: Final = 3  # bind and connect
_SCOPES: Final = 3  # abstract unix sockets, signals
_PATH_BENEATH: Final = 1


def read_abi() -> int:
    """The kernel's Landlock ABI version; 0 if Landlock isn't built in, is disabled or is refused."""
    try:
        return call("landlock_create_ruleset", 0, 0, 1)
    except OSError:
        return 0


class Ruleset:
    """What stays allowed: created, filled with rules, then applied to this process and its later children."""

    def __init__(self, version: int, *, tcp: bool = False, scoped: bool = True) -> None:
        """`tcp` leaves TCP unrestricted; `scoped=False` signals and abstract sockets. They need ABI 4 and ABI 6."""
        self._rights = _RIGHTS_OF_ABI.get(version, _ALL_RIGHTS)
        net = _TCP if version >= 4 and not tcp else 0
        scopes = _SCOPES if version >= 6 and scoped else 0
        attributes = struct.pack("=QQQ", self._rights, net, scopes)[: 8 if version < 4 else 16 if version < 6 else 24]
        self.descriptor = call("landlock_create_ruleset", attributes, len(attributes))

    def grant(self, path: str | int, rights: int) -> None:
        """Allow `rights` on a path (or descriptor) and all beneath it; for a file, only those that apply to files."""
        opened = path if isinstance(path, int) else os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(opened).st_mode):
                rights &= _ON_FILES
            rule = struct.pack("=Qi", rights & self._rights, opened)
            call("landlock_add_rule", self.descriptor, _PATH_BENEATH, rule)
        finally:
            if not isinstance(path, int):
                os.close(opened)

    def prepare_restrict(self) -> PreparedCall:
        """Prepare the call that applies the rules, irrevocably; needs `set_no_new_privileges` first."""
        return prepare_call("landlock_restrict_self", self.descriptor)

    def restrict(self) -> None:
        """Apply the rules to this process and close the ruleset."""
        invoke(self.prepare_restrict())
        self.close()

    def close(self) -> None:
        """Close the descriptor; processes already restricted stay so."""
        os.close(self.descriptor)
