"""Leave shared memory by writing where the C library keeps it.

family: shared memory
canary: leftover
stops: full, container
root: no
"""

with open(f"/dev/shm/{NAME}", "w") as file:
    file.write("evil")
