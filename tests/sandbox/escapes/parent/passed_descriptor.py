"""Have a handle of the sender come with each message.

family: parent
canary: claim
stops: full, container
root: no
"""

import socket

SO_PASSPIDFD, SCM_PIDFD = 76, 4
one, other = socket.socketpair()
one.setsockopt(socket.SOL_SOCKET, SO_PASSPIDFD, 1)
other.send(b"x")
_, control, _, _ = one.recvmsg(1, 64)
if any(kind == SCM_PIDFD for _, kind, _ in control):
    print(CLAIM)
