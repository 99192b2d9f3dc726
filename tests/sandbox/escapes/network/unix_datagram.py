"""Send a datagram to a socket in the file system, as to the system's log.

family: network
canary: network
stops: full, container
root: no
"""

import socket

socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(CLAIM.encode(), DATAGRAM_PATH)
