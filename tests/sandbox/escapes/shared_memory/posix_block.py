"""Leave a block of shared memory that has a name.

family: shared memory
canary: leftover
stops: full, container
root: no
"""

from multiprocessing import resource_tracker, shared_memory

block = shared_memory.SharedMemory(NAME, create=True, size=4096)
block.buf[:4] = b"evil"
resource_tracker.unregister(block._name, "shared_memory")
