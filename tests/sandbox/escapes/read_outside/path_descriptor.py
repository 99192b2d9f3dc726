"""Take a descriptor that needs no right to read, then open it again through /proc.

family: read outside
canary: secret
stops: full, container
root: no
"""

import os

descriptor = os.open(SECRET_FILE, os.O_PATH)
print(open(f"/proc/self/fd/{descriptor}").read())
