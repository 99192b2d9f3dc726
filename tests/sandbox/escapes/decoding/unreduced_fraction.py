"""Answer with a fraction of hundreds of thousands of digits.

family: decoding
canary: parent
stops: full, container
root: no
"""

import os
import sys
import time
from fractions import Fraction

large = 1 << 1_600_000


class Costly:
    def __reduce__(self):
        return Fraction, (large * 3, large * 3 + 1)


wire = sys.modules.get("ferrule.sandbox.python.wire.frames")
if wire is not None:
    answer = wire.pack_frame(
        {
            "value": {
                "$": "fraction",
                "of": [{"$": "int", "hex": hex(large * 3)}, {"$": "int", "hex": hex(large * 3 + 1)}],
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
