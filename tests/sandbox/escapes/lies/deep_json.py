"""Write an answer that is nested deeper than a reader's stack.

family: lies
canary: parent
stops: full, container
root: no
"""

import os

for descriptor in range(3, 256):
    try:
        os.write(descriptor, b"[" * 60_000)
    except OSError:
        pass
os._exit(0)
