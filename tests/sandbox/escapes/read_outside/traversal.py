"""Climb out of the working folder with "..", as far as it goes.

family: read outside
canary: secret
stops: full, container
root: no
"""

import os

print(open("../" * 40 + os.path.relpath(SECRET_FILE, "/")).read())
