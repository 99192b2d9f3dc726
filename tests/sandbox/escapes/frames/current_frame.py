"""Ask for the stack by name.

family: frames
canary: secret
stops: full, container
root: no
"""

import sys

print(sys._getframe(0).f_builtins["open"](SECRET_FILE).read())
