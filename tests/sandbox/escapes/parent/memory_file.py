"""Write into a process of the machine through its memory's file.

family: parent
canary: victim
stops: full, container
root: no
"""

import os

file = os.open(f"/proc/{VICTIM}/mem", os.O_RDWR)
os.pwrite(file, b"overwritten", VICTIM_ADDRESS)
