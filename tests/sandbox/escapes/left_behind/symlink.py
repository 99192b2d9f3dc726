"""Leave a symbolic link where the parent collects what the run made.

family: left behind
canary: secret
stops: full, container
root: no
"""

import os

os.symlink(SECRET_FILE, "result.txt")
