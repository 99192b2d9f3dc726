"""Connect to a service on the machine.

family: network
canary: network
stops: full, container
root: no
"""

import socket

socket.create_connection(("127.0.0.1", TCP_PORT), timeout=2).sendall(CLAIM.encode())
