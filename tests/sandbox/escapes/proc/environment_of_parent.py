"""Read the environment of whoever started this process.

family: proc
canary: secret
stops: full, container
root: no
"""

print(open(f"/proc/{PARENT}/environ").read())
