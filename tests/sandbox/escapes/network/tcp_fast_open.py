"""Send data with the first packet, without a call of connect.

family: network
canary: network
stops: full, container
root: no
"""

import socket

sender = socket.socket()
sender.settimeout(2)
sender.sendto(CLAIM.encode(), socket.MSG_FASTOPEN, ("127.0.0.1", TCP_PORT))
