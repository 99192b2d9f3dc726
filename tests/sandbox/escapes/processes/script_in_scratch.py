"""Write a script, make it executable, run it.

family: processes
canary: claim
stops: full, container
root: no
"""

import os

with open("script", "w") as file:
    file.write('#!/bin/sh\necho "$1"\n')
os.chmod("script", 0o700)
os.execv("./script", ["./script", CLAIM])
