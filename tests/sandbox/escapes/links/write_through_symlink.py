"""Make a symbolic link to a file of the host and write through it.

family: links
canary: folder
stops: full, container
root: no
"""

import os

os.symlink(PRECIOUS, "inside")
open("inside", "w").write("overwritten")
