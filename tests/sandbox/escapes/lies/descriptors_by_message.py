"""Send descriptors over every socket that was left, until the reader has too many.

family: lies
canary: parent
stops: full, container
root: no
"""

import os
import socket

for descriptor in range(3, 256):
    try:
        channel = socket.socket(fileno=os.dup(descriptor))
        channel.setblocking(False)
        for _ in range(100):
            socket.send_fds(channel, [b"x"], [0] * 100)
    except OSError:
        pass
os._exit(0)
