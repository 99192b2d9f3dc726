"""Take one end of a socket pair, which is allowed, and send from it to an abstract name.

family: network
canary: network
stops: full, container
root: no
"""

import socket

one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
one.sendmsg([CLAIM.encode()], [], 0, ABSTRACT + b".datagram")
