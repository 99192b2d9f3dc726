"""Talk to a service through a socket that has a name but no file.

family: network
canary: network
stops: full, container
root: no
"""

import socket

sender = socket.socket(socket.AF_UNIX)
sender.connect(ABSTRACT)
sender.sendall(CLAIM.encode())
