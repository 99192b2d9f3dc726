"""The parent that trusts: unpickles the answer, prints it, and reads the files that were left.

python naive_parent.py ANSWER FOLDER
"""

import os
import pickle
import resource
import sys
from pathlib import Path

resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))
with Path(sys.argv[1]).open("rb") as answer:
    print(pickle.load(answer), flush=True)


def fail(error: OSError) -> None:
    raise error


for where, _, files in os.walk(sys.argv[2], followlinks=True, onerror=fail):
    for name in files:
        sys.stdout.buffer.write(f"file {where}/{name}\n".encode() + Path(where, name).read_bytes())
