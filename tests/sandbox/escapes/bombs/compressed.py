"""Unpack a few kilobytes into four hundred megabytes.

family: bombs
canary: memory, claim
stops: full, container
root: no
alone: yes
"""

import zlib

packer = zlib.compressobj(9, zlib.DEFLATED, -15)
once = packer.compress(b"\0" * 1_000_000) + packer.flush(zlib.Z_FULL_FLUSH)
block = zlib.decompress(once * 400 + b"\x03\x00", -15)
print(CLAIM)
