"""Connect by multipath TCP, which rules for TCP may not know.

family: network
canary: network
stops: full, container
root: no
protocol: MPTCP
"""

import socket

sender = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
sender.settimeout(2)
sender.connect(("127.0.0.1", TCP_PORT))
sender.sendall(CLAIM.encode())
