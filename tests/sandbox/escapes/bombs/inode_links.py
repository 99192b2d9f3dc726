"""Make ten thousand symbolic links, which no limit on file sizes sees.

family: bombs
canary: claim
stops: full
root: no
alone: yes
"""

import os

for number in range(10_000):
    os.symlink("x" * 50, f"link{number}")
print(CLAIM)
