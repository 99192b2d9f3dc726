"""Make a device node, the way to the disk itself.

family: write outside
canary: claim
stops: full, container
root: yes
"""

import os
import stat

os.mknod("device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
os.write(os.open("device", os.O_WRONLY), b"x")
print(CLAIM)
