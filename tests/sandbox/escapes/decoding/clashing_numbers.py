"""Answer with a dictionary of numbers that all have one hash.

family: decoding
canary: parent
stops: full, container
root: no
"""

import os
import sys
import time

numbers = [number * (2**61 - 1) for number in range(1, 100_000)]


class Costly:
    def __reduce__(self):
        return dict.fromkeys, (numbers,)


wire = sys.modules.get("ferrule.sandbox.python.wire.frames")
if wire is not None:
    answer = wire.pack_frame(
        {
            "value": {
                "$": "dict",
                "keys": [{"$": "int", "hex": hex(one)} for one in numbers[:20_000]],
                "of": [0] * 20_000,
            }
        },
        [],
    )
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, answer)
        except OSError:
            pass
    time.sleep(20)
Costly()
