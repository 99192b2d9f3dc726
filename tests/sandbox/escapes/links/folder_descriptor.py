"""Keep a folder open, move it, and climb from where it was.

family: links
canary: secret
stops: full, container
root: no
"""

import os

os.makedirs("a/b")
descriptor = os.open("a/b", os.O_RDONLY)
os.rename("a/b", "b")
climbed = "../" * 40 + os.path.relpath(SECRET_FILE, "/")
print(os.read(os.open(climbed, os.O_RDONLY, dir_fd=descriptor), 1000))
