"""Put a module of one's own among those that are loaded.

family: next run
canary: next
stops: full, container
root: no
"""

import sys
import types

sys.modules["colorsys"] = types.SimpleNamespace(rgb_to_hsv=lambda *_: CLAIM)

# ---- the next run ----
import colorsys

print(colorsys.rgb_to_hsv(0, 0, 0))
