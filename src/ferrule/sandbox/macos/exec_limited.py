"""A program that lowers its own limits, moves descriptors, and replaces itself with another program.

    python -I -S exec_limited.py '{"limits": {"RLIMIT_CPU": 10}, "places": {"17": 3}}' PROGRAM [ARGUMENT …]

It runs before the profile is applied, so that the limits hold for `sandbox-exec` too, and as a separate process, since
a program with threads must not run Python between a fork and an exec.
"""

import json
import os
import resource
import sys


def main() -> None:
    """Apply the settings and exec the program. If that fails, exit with a traceback and status 1."""
    settings = json.loads(sys.argv[1])
    for name, wanted in settings["limits"].items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        least = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (least, least))
    for descriptor, place in settings["places"].items():
        os.dup2(int(descriptor), place)
        os.close(int(descriptor))
    os.umask(0o022)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
