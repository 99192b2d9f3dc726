"""Send a datagram.

family: network
canary: network
stops: full, container
root: no
"""

import socket

socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(CLAIM.encode(), ("127.0.0.1", UDP_PORT))
