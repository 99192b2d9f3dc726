"""Run a program from a file that exists in memory only.

family: processes
canary: claim
stops: full, container
root: no
"""

import os

program = os.memfd_create("program")
os.write(program, open("/bin/echo", "rb").read())
os.execve(program, ["echo", CLAIM], {})
