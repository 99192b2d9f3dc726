"""Enter the namespaces of a process of the machine.

family: parent
canary: claim
stops: full, container
root: yes
"""

import ctypes
import os

if ctypes.CDLL(None).setns(os.open(f"/proc/{VICTIM}/ns/net", os.O_RDONLY), 0) == 0:
    print(CLAIM)
