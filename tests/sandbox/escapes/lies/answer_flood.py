"""Write forty megabytes to every descriptor that takes them.

family: lies
canary: flood
stops: full, container
root: no
"""

import os

for descriptor in range(3, 256):
    try:
        os.fstat(descriptor)
        os.set_blocking(descriptor, True)
        for _ in range(40):
            os.write(descriptor, b"x" * 1_000_000)
    except OSError:
        pass
os._exit(0)
