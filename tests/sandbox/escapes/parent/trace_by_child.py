"""Be traced by the parent's side: ask to be a debugger's own.

family: parent
canary: claim
stops: full, container
root: no
"""

import ctypes

if ctypes.CDLL(None).ptrace(0, 0, None, None) == 0:
    print(CLAIM)
