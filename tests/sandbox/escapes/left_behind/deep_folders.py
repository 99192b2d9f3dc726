"""Leave folders within folders, deeper than a path may be long.

family: left behind
canary: parent
stops: full, container
root: no
"""

import os

for _ in range(1500):
    os.mkdir("deeper")
    os.chdir("deeper")
open("file", "w").write("x")
