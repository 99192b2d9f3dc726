"""Leave a codec that reads the next run's text differently.

family: next run
canary: next
stops: full, container
root: no
"""

import codecs

ascii_ = codecs.lookup("ascii")
codecs.register(
    lambda name: codecs.CodecInfo(lambda *_: (CLAIM.encode(), 1), ascii_.decode) if name == "left" else None
)

# ---- the next run ----
print("text".encode("left"))
