"""Announce an answer of exabytes.

family: lies
canary: parent
stops: full, container
root: no
"""

import os

for descriptor in range(3, 256):
    try:
        os.write(descriptor, b"\x8c\xff\xff\xff\xff\x7f" + b"\xff" * 16 + b"\x7f" * 16)
    except OSError:
        pass
os._exit(0)
