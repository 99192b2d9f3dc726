"""Make a folder on the host.

family: write outside
canary: folder
stops: full, container
root: no
"""

import os

os.makedirs(FOLDER + "/new/deep")
