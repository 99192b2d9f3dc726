"""Make a symbolic link to a file of the host and read through it.

family: links
canary: secret
stops: full, container
root: no
"""

import os

os.symlink(SECRET_FILE, "inside")
print(open("inside").read())
