"""Take one end of a socket pair, which is allowed, and send from it to a socket in the file system.

family: network
canary: network
stops: full, container
root: no
"""

import socket

one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
try:
    one.sendto(CLAIM.encode(), DATAGRAM_PATH)
except OSError:
    one.connect(DATAGRAM_PATH)
    one.send(CLAIM.encode())
