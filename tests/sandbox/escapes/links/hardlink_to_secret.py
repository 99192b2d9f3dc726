"""Give a file of the host a name inside, and read it there.

family: links
canary: secret
stops: full, container
root: no
"""

import os

os.link(SECRET_FILE, "inside")
print(open("inside").read())
