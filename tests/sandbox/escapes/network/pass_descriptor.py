"""Send an open file over a socket in the file system.

family: network
canary: network
stops: full, container
root: no
"""

import socket

sender = socket.socket(socket.AF_UNIX)
sender.connect(UNIX_PATH)
socket.send_fds(sender, [CLAIM.encode()], [0])
