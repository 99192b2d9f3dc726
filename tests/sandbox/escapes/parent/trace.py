"""Attach to a process of the machine as a debugger.

family: parent
canary: claim
stops: full, container
root: no
"""

import ctypes

libc = ctypes.CDLL(None)
PTRACE_SEIZE = 0x4206
if libc.ptrace(PTRACE_SEIZE, VICTIM, None, None) == 0:
    print(CLAIM)
