"""Leave a file in the temporary folder of the machine.

family: shared memory
canary: leftover
stops: full, container
root: no
"""

with open(f"/tmp/{NAME}", "w") as file:
    file.write("evil")
