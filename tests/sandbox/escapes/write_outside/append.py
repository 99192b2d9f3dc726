"""Add to a file of the host.

family: write outside
canary: folder
stops: full, container
root: no
"""

import os

os.write(os.open(PRECIOUS, os.O_WRONLY | os.O_APPEND), b"more")
