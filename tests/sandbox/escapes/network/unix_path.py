"""Talk to a service of the machine through a socket in the file system, as to a container engine.

family: network
canary: network
stops: full, container
root: no
"""

import socket

sender = socket.socket(socket.AF_UNIX)
sender.connect(UNIX_PATH)
sender.sendall(CLAIM.encode())
