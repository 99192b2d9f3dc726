"""Take a forbidden module from those that are loaded.

family: modules
canary: secret
stops: full, container
root: no
"""

import sys

print(sys.modules["os"].environ)
