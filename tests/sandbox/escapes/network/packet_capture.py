"""Listen to everything that passes on the wire.

family: network
canary: claim
stops: full, container
root: yes
"""

import socket

listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
listener.bind(("lo", 0))
print(CLAIM)
