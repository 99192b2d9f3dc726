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
from ferrule.sandbox.containment import RunLimits
from ferrule.sandbox.doctor import detect_layers_of
from ferrule.sandbox.macos.python_runs import find_interpreter_paths
from ferrule.sandbox.python.parent.execute import execute_once
from ferrule.sandbox.python.parent.request import encode_request
from ferrule.sandbox.python.parent.seatbelt import SeatbeltStarter
from ferrule.sandbox.python.parent.zygote_pool import ZygotePool, ZygoteSettings
from ferrule.sandbox.tiers import Tier


async def main(folder: Path) -> None:
    tool = stand_in(folder)
    launcher = SeatbeltStarter(tool)
    launcher.configure(find_interpreter_paths(()), folder, [], [])
    child = launcher.spawn(asdict(RunLimits()), 1000)
    await child.wait_until_confined()
    child.begin()
    run = await execute_once(child, encode_request("5 + 7", None, "<run>"), 20)
    launcher.close()
    await launcher.wait_until_gone()
    done = await Shells(tool, folder).run("cat; echo ran", given="x" * 9)
    found = detect_layers_of("darwin", tool)
    print(run.value, found.tier is Tier.SEATBELT, done.output.strip().removeprefix("x" * 9), await refusal(tool))


async def refusal(tool: Path) -> str:
    """What a whole sandbox says, under a program that contains nothing."""
    pool = ZygotePool(ZygoteSettings((), (), Tier.SEATBELT, 1000, seatbelt=tool), RunLimits())
    try:
        await pool.acquire_child(RunLimits())
    except SandboxUnavailable as error:
        return str(error).partition(" on this machine")[0]
    return "nothing"


with tempfile.TemporaryDirectory() as name:
    asyncio.run(main(Path(name).resolve()))
