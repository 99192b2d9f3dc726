"""Leave files whose names are no text, or more lines than one.

family: left behind
canary: parent
stops: full, container
root: no
"""

import os

for name in (b"\xff\xfe", b"a\nb", b"\x1b[2J", b"x" * 255, b"..."):
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
