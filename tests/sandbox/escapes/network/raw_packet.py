"""Send a packet made by hand.

family: network
canary: claim
stops: full, container
root: yes
"""

import socket

raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
raw.sendto(b"\x08\x00\xf7\xff\x00\x00\x00\x00", ("127.0.0.1", 0))
print(CLAIM)
