"""Swap a file for a link, over and over, while the parent collects.

family: left behind
canary: secret
stops: full, container
root: no
"""

import os
import time

open("plain.txt", "w").write("harmless")
end = time.monotonic() + 0.1
while time.monotonic() < end:
    os.symlink(SECRET_FILE, "link")
    os.rename("link", "result.txt")
    open("copy", "w").write("harmless")
    os.rename("copy", "result.txt")
os.symlink(SECRET_FILE, "link")
os.rename("link", "result.txt")
