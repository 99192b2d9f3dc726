"""Let the kernel copy the file to standard output.

family: read outside
canary: secret
stops: full, container
root: no
"""

import os

os.sendfile(1, os.open(SECRET_FILE, os.O_RDONLY), 0, 1000)
