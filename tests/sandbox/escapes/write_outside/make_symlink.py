"""Leave a symbolic link on the host.

family: write outside
canary: folder
stops: full, container
root: no
"""

import os

os.symlink("/etc/passwd", FOLDER + "/link")
