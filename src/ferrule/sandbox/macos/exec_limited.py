"""A program: lowers its own limits, puts descriptors in their places, and becomes what it is told to.

    python -I -S exec_limited.py '{"limits": {"RLIMIT_CPU": 10}, "places": {"17": 3}}' PROGRAM [ARGUMENT …]

It runs before the profile is put on, so that the limits hold for `sandbox-exec` too, and in a process of its own, since
a program with threads must not run Python between a fork and an exec.
"""

import json
import os
import resource
import sys


def main() -> None:
    """Become the program. What can't be limited or started ends this with a traceback and status 1."""
    told = json.loads(sys.argv[1])
    for name, wanted in told["limits"].items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        least = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (least, least))
    for descriptor, place in told["places"].items():
        os.dup2(int(descriptor), place)
        os.close(int(descriptor))
    os.umask(0o022)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
