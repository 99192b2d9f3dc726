"""Reach the system through a module that imported it.

family: modules
canary: secret
stops: full, container
root: no
related: CVE-2026-32640
"""

import random

print(random._os.environ)
