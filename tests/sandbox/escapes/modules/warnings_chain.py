"""Reach the modules through the class that catches warnings.

family: modules
canary: secret
stops: full, container
root: no
"""

import warnings

print(warnings.catch_warnings()._module.sys.modules["posix"].environ)
