"""Read the settings of the kernel.

family: proc
canary: claim
stops: full, container
root: no
"""

if open("/proc/sys/kernel/pid_max").read():
    print(CLAIM)
