"""Write to every file that was left open.

family: descriptors
canary: folder
stops: full, container
root: no
alone: yes
"""

import os

for descriptor in range(3, 1024):
    try:
        os.pwrite(descriptor, b"overwritten", 0)
    except OSError:
        pass
