"""Give a file of the host a second name there.

family: write outside
canary: folder
stops: full, container
root: no
"""

import os

os.link(PRECIOUS, FOLDER + "/second_name")
