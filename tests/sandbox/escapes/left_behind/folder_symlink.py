"""Leave a symbolic link to a folder where the parent collects.

family: left behind
canary: secret
stops: full, container
root: no
"""

import os

os.symlink(os.path.dirname(SECRET_FILE), "results")
