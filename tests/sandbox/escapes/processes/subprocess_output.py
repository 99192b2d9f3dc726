"""Run a program and read what it says.

family: processes
canary: secret
stops: full, container
root: no
"""

import subprocess

subprocess.run(["cat", SECRET_FILE], capture_output=True).stdout
