"""Let a maker of classes evaluate a default.

family: evaluators
canary: secret
stops: full, container
root: no
"""

import dataclasses

dataclasses.make_dataclass("Made", [("a", int, dataclasses.field(default_factory=lambda: print(*open(SECRET_FILE))))])()
