"""Lock a file of the host, so that its owner waits.

family: metadata outside
canary: claim
stops: full, container
root: no
"""

import fcntl

fcntl.flock(open(PRECIOUS), fcntl.LOCK_EX | fcntl.LOCK_NB)
print(CLAIM)
