"""Receive frames from the interpreter as a tracer.

family: frames
canary: secret
stops: full, container
root: no
"""

import sys

found = []
sys.settrace(lambda frame, event, argument: found.append(frame.f_builtins["open"]))
(lambda: None)()
sys.settrace(None)
print(found[0](SECRET_FILE).read())
