"""Leave a file in the temporary folder that outlives a restart.

family: shared memory
canary: leftover
stops: full, container
root: no
"""

with open(f"/var/tmp/{NAME}", "w") as file:
    file.write("evil")
