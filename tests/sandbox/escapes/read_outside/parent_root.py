"""Go through the root of the parent, which sees the whole machine.

family: read outside
canary: secret
stops: full, container
root: no
"""

print(open(f"/proc/{PARENT}/root" + SECRET_FILE).read())
