"""Offer a service to the rest of the machine.

family: network
canary: claim
stops: full, container
root: no
"""

import socket

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print(CLAIM)
