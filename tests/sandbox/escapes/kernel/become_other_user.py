"""Become another user, whose files and processes then are one's own.

family: kernel
canary: claim
stops: full, container
root: yes
"""

import os

os.setgroups([])
os.setresuid(33, 33, 33)
print(CLAIM)
