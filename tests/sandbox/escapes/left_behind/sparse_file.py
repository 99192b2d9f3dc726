"""Leave a file that is large to read and small on the disk.

family: left behind
canary: flood
stops: full, container
root: no
"""

import os

os.truncate(os.open("result.bin", os.O_CREAT | os.O_RDWR), 40_000_000)
