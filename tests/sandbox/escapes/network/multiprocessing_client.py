"""Connect with the client of multiprocessing.

family: network
canary: network
stops: full, container
root: no
"""

from multiprocessing.connection import SocketClient

SocketClient(UNIX_PATH).send_bytes(CLAIM.encode())
