"""Carry data out as a question to a name server.

family: network
canary: network
stops: full, container
root: no
"""

import socket
import struct

name = b"".join(bytes([len(part)]) + part for part in (CLAIM.encode(), b"example", b"org")) + b"\0"
question = struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + name + struct.pack("!2H", 1, 1)
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(question, ("127.0.0.1", UDP_PORT))
