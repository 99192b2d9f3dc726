"""Process 1 of a session that may fork: it reaps what is left of the session's forks, and runs nothing of theirs."""

from __future__ import annotations

import os
import signal

from ferrule.sandbox.linux import syscalls


def keep() -> int:
    """Stay behind as a keeper, with a child that becomes the session: this returns there, with the keeper's pid.

    Forks are the session's children, and orphans once it is rolled back. The keeper ends with the last of them; when
    it is killed, or with the zygote, the kernel ends all of them.
    """
    own = os.getpid()
    if os.fork() == 0:
        return own
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            os._exit(0)
