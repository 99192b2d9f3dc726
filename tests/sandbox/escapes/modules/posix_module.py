"""Import what lies under the os module.

family: modules
canary: secret
stops: full, container
root: no
"""

import posix

print(posix.read(posix.open(SECRET_FILE, posix.O_RDONLY), 1000))
