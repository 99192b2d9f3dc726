"""Overwrite a file of the host.

family: write outside
canary: folder
stops: full, container
root: no
"""

with open(PRECIOUS, "w") as file:
    file.write("overwritten")
