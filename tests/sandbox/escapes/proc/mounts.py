"""Learn how the machine's disks are mounted.

family: proc
canary: claim
stops: full, container
root: no
"""

if open("/proc/self/mountinfo").read():
    print(CLAIM)
