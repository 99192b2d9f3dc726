"""Make another folder the root, the first half of leaving one.

family: kernel
canary: claim
stops: full, container
root: yes
"""

import os

os.mkdir("new")
os.chroot("new")
print(CLAIM)
