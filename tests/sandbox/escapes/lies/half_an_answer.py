"""Begin a good answer and leave in the middle.

family: lies
canary: parent
stops: full, container
root: no
"""

import os

for descriptor in range(3, 256):
    try:
        os.write(descriptor, b'\x80\x04\x95\x20\x00{"value": [1, 2, ')
    except OSError:
        pass
os._exit(0)
