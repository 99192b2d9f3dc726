"""Set the machine's name (to what it is).

family: kernel
canary: claim
stops: full, container
root: yes
"""

import socket

socket.sethostname(socket.gethostname())
print(CLAIM)
