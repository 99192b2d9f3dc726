"""Open again what a process of the machine has open.

family: parent
canary: secret
stops: full, container
root: no
"""

import os

for number in os.listdir(f"/proc/{VICTIM}/fd"):
    with open(f"/proc/{VICTIM}/fd/{number}", "rb", buffering=0) as file:
        if file.seekable():
            print(file.read(1000))
