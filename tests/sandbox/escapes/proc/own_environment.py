"""Read the environment that this process was started with.

family: proc
canary: secret
stops: full, container
root: no
"""

print(open("/proc/self/environ").read())
