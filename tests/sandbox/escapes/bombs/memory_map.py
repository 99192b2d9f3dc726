"""Take 400 megabytes from the kernel, as memory that could be shared.

family: bombs
canary: memory, claim
stops: full, container
root: no
alone: yes
"""

import mmap

block = mmap.mmap(-1, 400_000_000)
for place in range(0, len(block), 4096):
    block[place] = 1
print(CLAIM)
