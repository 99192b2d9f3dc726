"""Ask the kernel for its network interfaces.

family: network
canary: claim
stops: full, container
root: no
"""

import socket
import struct

asker = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
asker.bind((0, 0))
asker.send(struct.pack("=IHHIIB3x", 20, 18, 0x301, 1, 0, 0))
if asker.recv(65536):
    print(CLAIM)
