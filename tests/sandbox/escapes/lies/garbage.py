"""Write garbage to every descriptor.

family: lies
canary: parent
stops: full, container
root: no
"""

import os

for descriptor in range(3, 256):
    try:
        os.write(descriptor, b"\xff\x00{[garbage" * 100)
    except OSError:
        pass
os._exit(0)
