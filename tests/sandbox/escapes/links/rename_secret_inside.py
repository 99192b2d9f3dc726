"""Move a file of the host inside, and read it there.

family: links
canary: secret
stops: full, container
root: no
"""

import os

os.link(SECRET_FILE, FOLDER + "/copy")
os.rename(FOLDER + "/copy", "inside")
print(open("inside").read())
