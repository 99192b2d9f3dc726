"""Read the environment of every process that can be seen.

family: proc
canary: secret
stops: full, container
root: no
"""

import glob

for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        text = open(path, errors="replace").read()
    except OSError:
        continue
    if SECRET_NAME in text:
        print(text)
