"""Hold data in the kernel: socket pairs that nobody reads.

family: bombs
canary: claim
stops: full, container
root: no
alone: yes
"""

import resource
import socket

resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held, pairs = 0, []
for _ in range(250):
    one, other = socket.socketpair()
    pairs += [one, other]
    one.setblocking(False)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    try:
        while True:
            held += one.send(b"x" * 65536)
    except BlockingIOError:
        pass
if held > 32 << 20:
    print(CLAIM)
