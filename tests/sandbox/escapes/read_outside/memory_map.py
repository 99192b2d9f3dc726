"""Map a file of the host into memory instead of reading it.

family: read outside
canary: secret
stops: full, container
root: no
"""

import mmap
import os

descriptor = os.open(SECRET_FILE, os.O_RDONLY)
print(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)[:])
