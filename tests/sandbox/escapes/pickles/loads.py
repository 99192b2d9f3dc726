"""Let pickle call a function.

family: pickles
canary: secret
stops: full, container
root: no
"""

import pickle

print(pickle.loads(b"cbuiltins\nopen\n(S" + repr(SECRET_FILE).encode() + b"\ntR.").read())
