"""Make a symbolic link to a folder of the host and walk through it.

family: links
canary: secret
stops: full, container
root: no
"""

import os

os.symlink(os.path.dirname(SECRET_FILE), "inside")
print(open("inside/" + os.path.basename(SECRET_FILE)).read())
