"""Become another program.

family: processes
canary: secret
stops: full, container
root: no
"""

import os

os.execv("/bin/cat", ["cat", SECRET_FILE])
