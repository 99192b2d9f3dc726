"""Read from every descriptor that was left open.

family: descriptors
canary: secret
stops: full, container
root: no
"""

import os

for descriptor in range(3, 1024):
    try:
        print(os.pread(descriptor, 1000, 0))
    except OSError:
        pass
