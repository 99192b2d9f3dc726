"""Run a program through the dynamic loader, past a mount that forbids to execute.

family: processes
canary: secret
stops: full, container
root: no
"""

import glob
import os

(loader, *_) = glob.glob("/lib64/ld-linux*") + glob.glob("/lib/ld-linux*")
os.execv(loader, [loader, "/bin/cat", SECRET_FILE])
