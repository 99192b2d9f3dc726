"""Make a named pipe on the host.

family: write outside
canary: folder
stops: full, container
root: no
"""

import os

os.mkfifo(FOLDER + "/pipe")
