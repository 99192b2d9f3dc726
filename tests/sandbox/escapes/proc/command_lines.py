"""Read the command line of a process of the machine.

family: proc
canary: claim
stops: full, container
root: no
"""

if "sleep" in open(f"/proc/{VICTIM}/cmdline").read():
    print(CLAIM)
