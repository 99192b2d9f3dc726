"""Take 400 megabytes as a file that has no name.

family: bombs
canary: memory, claim
stops: full, container
root: no
alone: yes
"""

import os

file = os.memfd_create("bomb")
for _ in range(400):
    os.write(file, b"x" * 1_000_000)
print(CLAIM)
