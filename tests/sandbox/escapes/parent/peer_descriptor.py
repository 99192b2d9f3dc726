"""Ask a socket for a handle of the process at its other end.

family: parent
canary: claim
stops: full, container
root: no
"""

import socket

SO_PEERPIDFD = 77
inherited = []
for descriptor in range(3, 256):
    try:
        inherited.append(socket.socket(fileno=descriptor))
    except OSError:
        continue
for each in (*inherited, *socket.socketpair()):
    try:
        each.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
    except OSError:
        continue
    print(CLAIM)
