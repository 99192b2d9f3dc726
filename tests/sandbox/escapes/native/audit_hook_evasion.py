"""Call what raises no audit event: the interpreter's own reader of lines.

family: native
canary: secret
stops: full, container
root: no
"""

import _io

print(_io.FileIO(SECRET_FILE).readall())
