"""Hold data in the kernel: three hundred pipes of a megabyte, filled.

family: bombs
canary: claim
stops: full, container
root: no
alone: yes
"""

import fcntl
import os
import resource

resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = 0
for _ in range(300):
    _, write = os.pipe()
    os.set_blocking(write, False)
    try:
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 1 << 20)
    except PermissionError:
        pass
    held += os.write(write, b"x" * (1 << 20))
if held > 16 << 20:
    print(CLAIM)
