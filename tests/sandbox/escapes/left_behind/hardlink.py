"""Leave a second name of a file of the host where the parent collects.

family: left behind
canary: secret
stops: full, container
root: no
"""

import os

os.link(SECRET_FILE, "result.txt")
