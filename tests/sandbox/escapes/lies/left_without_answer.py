"""Leave with the code of success and no answer.

family: lies
canary: parent
stops: full, container
root: no
"""

import os

os._exit(0)
