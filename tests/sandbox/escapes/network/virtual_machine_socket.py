"""Open a socket to the host of a virtual machine.

family: network
canary: claim
stops: full, container
root: no
protocol: AF_VSOCK
"""

import socket

socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
print(CLAIM)
