"""Go round a view of the file system by the magic link to the root.

family: read outside
canary: secret
stops: full, container
root: no
"""

print(open("/proc/self/root" + SECRET_FILE).read())
