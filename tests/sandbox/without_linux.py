"""Run as a program: takes from the standard library what macOS hasn't, then uses the seatbelt tier's own parts.

What is taken is named in the library's documentation as Linux's, or as not there on macOS.
"""
# ruff: noqa: E402

import asyncio
import fcntl
import os
import resource
import signal
import socket
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

GONE = {
    os: "pidfd_open pipe2 memfd_create splice eventfd sched_setaffinity sched_getaffinity O_PATH unshare "
    "setns setresuid setresgid getresuid posix_fallocate getrandom copy_file_range waitid",
    socket: "SO_PASSCRED SCM_CREDENTIALS AF_NETLINK AF_PACKET AF_VSOCK MSG_CMSG_CLOEXEC SOCK_CLOEXEC SO_PEERCRED",
    signal: "pidfd_send_signal sigtimedwait sigwaitinfo",
    resource: "prlimit RLIMIT_MSGQUEUE RLIMIT_NICE RLIMIT_RTPRIO RLIMIT_RTTIME RLIMIT_SIGPENDING",
    fcntl: "F_SETPIPE_SZ F_GETPIPE_SZ",
}
for module, names in GONE.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
if hasattr(os, "process_cpu_count"):  # from Python 3.13 on, made so where there is no affinity
    os.process_cpu_count = os.cpu_count

sys.path[:0] = [sys.argv[1], str(Path(__file__).parent)]

from macos_shells import Shells
from seatbelt import stand_in

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.contain import Limits
from ferrule.sandbox.layers import layers_of
from ferrule.sandbox.macos.runs import ground
from ferrule.sandbox.python.conversing import run_once
from ferrule.sandbox.python.pool import Pool, Settings
from ferrule.sandbox.python.requests import request
from ferrule.sandbox.python.seatbelted import Seatbelt
from ferrule.sandbox.tier import Tier


async def main(folder: Path) -> None:
    tool = stand_in(folder)
    launcher = Seatbelt(tool)
    launcher.lay_ground(ground(()), folder, [], [])
    child = launcher.spawn(asdict(Limits()), 1000)
    await child.confined()
    child.begin()
    run = await run_once(child, request("5 + 7", None, "<run>"), 20)
    launcher.close()
    await launcher.gone()
    done = await Shells(tool, folder).run("cat; echo ran", given="x" * 9)
    found = layers_of("darwin", tool)
    print(run.value, found.tier is Tier.SEATBELT, done.output.strip().removeprefix("x" * 9), await refusal(tool))


async def refusal(tool: Path) -> str:
    """What a whole sandbox says, under a program that contains nothing."""
    pool = Pool(Settings((), (), Tier.SEATBELT, 1000, seatbelt=tool), Limits())
    try:
        await pool.child(Limits())
    except SandboxUnavailable as error:
        return str(error).partition(" on this machine")[0]
    return "nothing"


with tempfile.TemporaryDirectory() as name:
    asyncio.run(main(Path(name).resolve()))
