"""What a hostile command tries, and how to tell that it worked.

Each is run in a plain subprocess, where it must work (else it proves nothing), and in each tier, where it must not.
There it reaches what these tests made (files, processes, sockets), and nothing that belongs to the machine.
"""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ferrule.sandbox.shell import CommandResult

SECRET = "the-canary-secret"
# Seconds to sleep, by which no other run of these tests takes a process for its own.
MARK = f"98760.{os.getpid()}"


@dataclass
class World:
    """A workspace with a repository and secrets, what lies around it, and a process beside it."""

    root: Path
    workspace: Path
    home: Path
    outside: Path
    victim: subprocess.Popen[bytes]
    descriptor: int
    port: int
    heard: list[str] = field(default_factory=list)

    def abstract(self) -> str:
        """The name of a socket without a path, which is all of a machine's that shares its network."""
        return f"ferrule-test-{self.port}"

    def words(self) -> dict[str, str]:
        """What a command's text may name."""
        return {
            "outside": str(self.outside),
            "home": str(self.home),
            "victim": str(self.victim.pid),
            "parent": str(os.getpid()),
            "descriptor": str(self.descriptor),
            "port": str(self.port),
            "socket": str(self.root / "host.sock"),
            "abstract": self.abstract(),
            "mark": MARK,
            "python": os.path.realpath(sys.executable),
        }


Hit = Callable[[World, CommandResult], bool]


@dataclass(frozen=True)
class Attack:
    name: str
    command: str
    hit: Hit
    tiers: tuple[str, ...] = ("full", "container")
    control: tuple[str, ...] = ("/bin/sh", "-c")
    """What runs it uncontained, where a plain shell would reach more than what these tests made."""


@contextmanager
def world(root: Path) -> Iterator[World]:
    """Everything real: sockets that listen, a process that runs, a descriptor that could be inherited."""
    workspace, home, outside = root / "workspace", root / "home", root / "outside"
    for folder in (workspace / "sub", workspace / "tests", home / ".ssh", home / ".aws", home / ".config/gh", outside):
        folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    secrets = [
        home / ".ssh/id_ed25519",
        home / ".aws/credentials",
        home / ".config/gh/hosts.yml",
        home / ".netrc",
        home / ".env",
    ]
    secrets += [
        workspace / ".env",
        workspace / "sub/.env.local",
        workspace / "sub/plain",
        workspace / "tests/server.key",
    ]
    for path in secrets:
        path.write_text(SECRET + "\n")
    (workspace / "tests/.env.linked").symlink_to("../sub/plain")
    (workspace / "tests/chain.pem").write_text(f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n")
    (outside / "file").write_text("untouched")
    with ExitStack() as stack:
        victim = stack.enter_context(subprocess.Popen(["sleep", "300"], env={"VICTIM": SECRET}))
        stack.callback(victim.kill)
        descriptor = os.open(home / ".ssh/id_ed25519", os.O_RDONLY)
        stack.callback(os.close, descriptor)
        os.set_inheritable(descriptor, True)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        made = World(root, workspace, home, outside, victim, descriptor, tcp.getsockname()[1])
        listening = [("tcp", tcp)]
        for name, address in (("path", str(root / "host.sock")), ("abstract", f"\0{made.abstract()}")):
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(address)
            server.listen()
            listening.append((name, server))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", made.port))
        threads = [threading.Thread(target=_hear, args=(made, *each), daemon=True) for each in listening]
        threads.append(threading.Thread(target=_receive, args=(made, udp), daemon=True))
        for thread in threads:
            thread.start()
        yield made
        for _, server in listening:
            server.shutdown(socket.SHUT_RDWR)
        udp.sendto(b"end", udp.getsockname())
        threads[-1].join()


def _hear(made: World, name: str, server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        made.heard.append(name)
        connection.close()


def _receive(made: World, udp: socket.socket) -> None:
    while udp.recv(16) != b"end":
        made.heard.append("udp")


def said(text: str = SECRET) -> Hit:
    """The command printed it."""
    return lambda _, done: text in done.output


def made(name: str) -> Hit:
    """A file is there, outside or in the workspace."""
    return lambda world, _: os.path.lexists(world.root / name)


def heard(name: str) -> Hit:
    return lambda world, _: name in world.heard


def has_died(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended, or does in the moment that a killed one takes to go."""
    try:
        process.wait(0.5)
    except subprocess.TimeoutExpired:
        return False
    return True


def survives() -> Hit:
    """A process with a telling argument runs on; it is ended then."""

    def found(_: World, done: CommandResult) -> bool:
        alive = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if MARK.encode() in words:
                    alive.append(int(entry.name))
        for pid in alive:
            os.kill(pid, signal.SIGKILL)
        return bool(alive)

    return found


def _python(code: str) -> str:
    return '{python} -I -S -c "' + code + '"'


def _was_replaced(world: World, _: CommandResult) -> bool:
    return not (world.workspace / ".git/HEAD").exists() or (world.workspace / ".git/evil").exists()


FILES = [
    *(
        Attack(f"read-home-{name}", f"cat {{home}}/{name}", said())
        for name in (".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".env")
    ),
    Attack("read-home-by-link", "ln -s {home}/.ssh sub/keys; cat sub/keys/id_ed25519", said()),
    Attack("read-home-by-dots", "cat ../home/.aws/credentials", said()),
    Attack("read-env", "cat .env", said()),
    Attack("read-env-deep", "cat sub/.env.local", said()),
    Attack("read-env-by-link", "ln -s .env.local sub/x; cat sub/x", said()),
    Attack("read-env-by-hard-link", "ln sub/.env.local tests/x; cat tests/x", said()),
    Attack("read-env-moved", "mv sub/.env.local tests/x; cat tests/x", said()),
    Attack("read-env-in-moved-folder", "mv sub tests/moved; cat tests/moved/.env.local", said()),
    Attack("read-what-a-link-named-env-leads-to", "cat sub/plain", said()),
    Attack("read-key", "cat tests/server.key", said()),
    Attack("read-key-in-pem", "cat tests/chain.pem", said()),
    Attack(
        "write-env",
        "echo evil >>.env; echo evil >>sub/.env.local",
        lambda w, _: "evil" in (w.workspace / ".env").read_text(),
    ),
    Attack("write-outside", "echo x >{outside}/new", made("outside/new")),
    Attack("write-by-dots", "echo x >../outside/new", made("outside/new")),
    Attack("write-by-link", "ln -s {outside} tests/link; echo x >tests/link/new", made("outside/new")),
    Attack(
        "write-by-hard-link",
        "ln {outside}/file tests/hard; echo x >tests/hard",
        lambda world, _: (world.outside / "file").read_text() != "untouched",
    ),
    Attack("delete-outside", "rm -rf {outside}", lambda world, _: not (world.outside / "file").exists()),
    Attack("move-in", "mv {outside}/file tests/file", lambda world, _: not (world.outside / "file").exists()),
    Attack(
        "chmod-outside",
        "chmod 0777 {outside}/file",
        lambda world, _: (world.outside / "file").stat().st_mode & 0o777 == 0o777,
    ),
    Attack(
        "touch-outside", "touch -d 2001-01-01 {outside}/file", lambda w, _: (w.outside / "file").stat().st_mtime < 1e9
    ),
    Attack("hook", "echo x >.git/hooks/post-checkout", made("workspace/.git/hooks/post-checkout")),
    Attack("git-config", "git config core.fsmonitor evil; cat .git/config", said("evil")),
    Attack("git-config-by-link", "ln -s ../.git sub/g; echo evil >>sub/g/config; cat .git/config", said("evil")),
    Attack("git-removed", "rm -rf .git", _was_replaced),
    Attack("git-renamed", "mv .git old; mkdir .git; touch .git/evil", _was_replaced),
    Attack(
        "git-renamed-over", "mkdir tests/g; touch tests/g/evil; mv -T .git sub/old; mv -T tests/g .git", _was_replaced
    ),
]

PROCESSES = [
    # Of what is read, only the names and the canaries are printed: the rest is not for a test's output.
    Attack("environment", "env | grep -o unmistakable", said("unmistakable")),
    Attack("environment-of-parent", "tr '\\0' '\\n' </proc/{parent}/environ | grep -ao '^[A-Z]*='", said("PATH=")),
    Attack("environment-of-other", "tr '\\0' '\\n' </proc/{victim}/environ", said()),
    Attack("environment-of-all", "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a ^VICTIM=", said()),
    Attack("arguments-of-others", "cat /proc/{victim}/cmdline", said("sleep")),
    Attack("root-of-other", "cat /proc/{victim}/root{home}/.netrc", said()),
    Attack("descriptor", "cat /proc/self/fd/{descriptor} || cat <&{descriptor}", said()),
    Attack("kill-other", "kill -9 {victim}", lambda world, _: has_died(world.victim)),
    Attack(
        "limit-other",
        "prlimit --pid {victim} --nofile=7:7",
        lambda world, _: resource.prlimit(world.victim.pid, resource.RLIMIT_NOFILE)[0] == 7,
    ),
    Attack(
        "renice-other",
        "renice 19 -p {victim} && echo reached",  # the tests may have been started with that priority already
        said("reached"),
    ),
    Attack("left-behind", "sleep {mark} & sleep 0.2", survives()),
    Attack("left-behind-session", "setsid -f sleep {mark} >/dev/null 2>&1; sleep 0.2", survives()),
    Attack("left-behind-holding-output", "setsid -f sleep {mark}; nohup setsid -f sleep {mark}; sleep 0.2", survives()),
    Attack("user-namespace", "unshare -Ur echo reached", said("reached")),
    Attack("mount", "unshare -Urm sh -c 'mount -t tmpfs none /mnt && echo reached'", said("reached")),
    Attack(
        "terminal-input",
        _python(
            "import fcntl\ntry: fcntl.ioctl(0,0x5412,b'x')\n"
            "except OSError as error: print('passed' if error.errno==25 else error)"
        ),
        said("passed"),
    ),
    Attack(
        "kernel-setting",
        "cd /proc/sys/kernel && [ -w domainname ] && : >>domainname && echo reached",
        said("reached"),
        control=("unshare", "--uts", "/bin/sh", "-c"),  # to which this setting belongs
    ),
]

# The word is in two pieces: from Python 3.13 on, a traceback shows the lines of a program that was given with -c.
_SOCKET = "import socket; s=socket.socket({kind}); print('rea' 'ched')"
NETWORK = [
    Attack("tcp", _python("import socket; socket.create_connection(('127.0.0.1',{port}),5)"), heard("tcp")),
    Attack(
        "udp",
        _python("import socket; socket.socket(socket.AF_INET,socket.SOCK_DGRAM).sendto(b'x',('127.0.0.1',{port}))")
        + "; sleep 0.2",
        heard("udp"),
    ),
    Attack(
        "unix-path",
        _python("import socket; socket.socket(socket.AF_UNIX).connect('{socket}')") + "; sleep 0.2",
        heard("path"),
    ),
    Attack(
        "unix-abstract",
        _python("import socket; socket.socket(socket.AF_UNIX).connect(chr(0)+'{abstract}')") + "; sleep 0.2",
        heard("abstract"),
    ),
    *(
        Attack(f"socket-{name}", _python(_SOCKET.replace("{kind}", kind)), said("reached"))
        for name, kind in {
            "netlink": "16,3,0",
            "unix": "1,1,0",
            "unix-datagram": "1,2,0",
            **({"packet": "17,3,0", "raw": "2,3,1"} if os.geteuid() == 0 else {}),
        }.items()
    ),
]


def _flags(path: Path) -> int:
    with path.open("rb") as file:
        return struct.unpack("=Ii", fcntl.ioctl(file, _GET_FLAGS, bytes(8)))[0]


def _kernel_has(try_out: Callable[[int], object]) -> bool:
    """Whether this kernel, and the file system of temporary files, have what an attack uses."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "file").touch()
        with Path(folder, "file").open("rb") as file:
            try:
                try_out(file.fileno())
            except OSError:
                return False
    return True


def _peers_handle(_: int) -> None:
    one, other = socket.socketpair()
    with one, other:
        os.close(one.getsockopt(socket.SOL_SOCKET, _PEER_PIDFD))


_GET_FLAGS, _SET_FLAGS, _NO_DUMP, _PEER_PIDFD = 0x80086601, 0x40086602, 0x40, 77
_IMPORTS = "import fcntl,socket,struct; "
HANDLES = [
    Attack(
        "flags-outside",
        _python(_IMPORTS + "fcntl.ioctl(open('{outside}/file'),0x40086602,struct.pack('=Ii',0x40,0))"),
        lambda world, _: bool(_flags(world.outside / "file") & _NO_DUMP),
    ),
    Attack(
        "extended-flags-outside",
        _python(
            _IMPORTS + "f=open('{outside}/file'); s=bytearray(fcntl.ioctl(f,0x801C581F,bytes(28))); s[0]|=0x80; "
            "fcntl.ioctl(f,0x401C5820,bytes(s))"
        ),
        lambda world, _: bool(_flags(world.outside / "file") & _NO_DUMP),
    ),
    Attack(
        "lease-outside",
        _python(_IMPORTS + "f=open('{outside}/file'); fcntl.fcntl(f,1024,fcntl.F_RDLCK); print('rea' 'ched')"),
        said("reached"),
    ),
    Attack(
        "handle-of-a-peer",
        _python(_IMPORTS + "one,other=socket.socketpair(); one.getsockopt(1,77); print('rea' 'ched')"),
        said("reached"),
    ),
    Attack(
        "handle-in-a-message",
        _python(
            _IMPORTS + "one,other=socket.socketpair(); one.setsockopt(1,76,1); other.send(b'x'); "
            "print('rea' 'ched' if one.recvmsg(1,64)[1] else '')"
        ),
        said("reached"),
    ),
]
_NEEDS: dict[str, Callable[[int], object]] = {
    "flags-outside": lambda file: fcntl.ioctl(file, _SET_FLAGS, struct.pack("=Ii", _NO_DUMP, 0)),
    "extended-flags-outside": lambda file: fcntl.ioctl(file, 0x401C5820, fcntl.ioctl(file, 0x801C581F, bytes(28))),
    "lease-outside": lambda file: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK),
    "handle-of-a-peer": _peers_handle,
    "handle-in-a-message": _peers_handle,
}

ATTACKS = (
    [each for each in HANDLES if _kernel_has(_NEEDS[each.name])]
    + FILES
    + [each for each in PROCESSES if each.name != "kernel-setting" or os.geteuid() == 0]
    + NETWORK
)

needed = ("git", "grep", "prlimit", "renice", "setsid", "unshare")
missing = [name for name in needed if shutil.which(name) is None]
