"""Shut a folder of the host.

family: metadata outside
canary: folder
stops: full, container
root: no
"""

import os

os.chmod(FOLDER + "/kept", 0)
