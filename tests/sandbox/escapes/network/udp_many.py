"""Send several datagrams with one call that few filters look into.

family: network
canary: network
stops: full, container
root: no
"""

import socket

sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.sendmsg([CLAIM.encode()], [], 0, ("127.0.0.1", UDP_PORT))
