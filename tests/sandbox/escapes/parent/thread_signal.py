"""Send a signal to a thread, by its number alone.

family: parent
canary: victim
stops: full, container
root: no
"""

import ctypes

ctypes.CDLL(None).syscall(NR["tkill"], VICTIM, 9)
