"""Send a datagram from a connected socket, by write.

family: network
canary: network
stops: full, container
root: no
"""

import os
import socket

sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect(("127.0.0.1", UDP_PORT))
os.write(sender.fileno(), CLAIM.encode())
