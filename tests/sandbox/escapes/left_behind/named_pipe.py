"""Leave a named pipe, so that whoever opens it waits for ever.

family: left behind
canary: parent
stops: full, container
root: no
"""

import os

os.mkfifo("result.txt")
