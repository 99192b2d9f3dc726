"""Learn from the kernel's tables who listens on the machine.

family: proc
canary: claim
stops: full, container
root: no
"""

if f":{TCP_PORT:04X} " in open("/proc/net/tcp").read():
    print(CLAIM)
