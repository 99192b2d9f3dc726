"""Run a command of the shell.

family: processes
canary: secret
stops: full, container
root: no
"""

import os

os.system(f"cat {SECRET_FILE}")
