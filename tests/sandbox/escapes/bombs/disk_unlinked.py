"""Fill the disk with files that have no name any more.

family: bombs
canary: claim
stops: full
root: no
alone: yes
"""

import os

held = []
for _ in range(100):
    held.append(os.open("gone", os.O_RDWR | os.O_CREAT | os.O_EXCL))
    os.unlink("gone")
    os.write(held[-1], b"x" * 1_000_000)
print(CLAIM)
