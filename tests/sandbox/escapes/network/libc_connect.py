"""Connect through the C library, past Python's socket module.

family: network
canary: network
stops: full, container
root: no
"""

import ctypes
import socket
import struct

libc = ctypes.CDLL(None)
number = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
address = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", TCP_PORT, bytes([127, 0, 0, 1]))
if libc.connect(number, address, 16) == 0:
    libc.send(number, CLAIM.encode(), len(CLAIM), 0)
