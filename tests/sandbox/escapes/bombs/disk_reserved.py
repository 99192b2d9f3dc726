"""Reserve a hundred megabytes without writing them.

family: bombs
canary: claim
stops: full, container
root: no
alone: yes
"""

import os

os.posix_fallocate(os.open("big", os.O_RDWR | os.O_CREAT), 0, 100_000_000)
print(CLAIM)
