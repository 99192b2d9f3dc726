"""Close every descriptor and go on in order.

family: lies
canary: parent
stops: full, container
root: no
"""

import os

os.closerange(0, 1024)
1
