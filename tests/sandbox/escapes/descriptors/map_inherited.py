"""Map what was left open into memory.

family: descriptors
canary: secret
stops: full, container
root: no
"""

import mmap

for descriptor in range(3, 1024):
    try:
        print(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)[:1000])
    except (OSError, ValueError):
        pass
