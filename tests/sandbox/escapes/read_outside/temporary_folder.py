"""Look at what other programs left in a folder that all share.

family: read outside
canary: claim
stops: full, container
root: no
"""

import os

place, name = os.path.split(os.path.dirname(FOLDER))
if name in os.listdir(place):
    print(CLAIM)
