"""Let two files of the host change places.

family: write outside
canary: folder
stops: full, container
root: no
"""

import ctypes

libc = ctypes.CDLL(None)
libc.syscall(NR["renameat2"], -100, PRECIOUS.encode(), -100, f"{FOLDER}/kept/other.txt".encode(), 2)
