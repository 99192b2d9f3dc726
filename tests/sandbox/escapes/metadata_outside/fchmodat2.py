"""Change the mode with a newer system call than filters may know.

family: metadata outside
canary: folder
stops: full, container
root: no
"""

import ctypes

ctypes.CDLL(None).syscall(NR["fchmodat2"], -100, PRECIOUS.encode(), 0o777, 0)
