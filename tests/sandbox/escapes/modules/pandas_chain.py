"""Reach the system through pandas.

family: modules
canary: secret
stops: full, container
root: no
related: CVE-2024-12366
"""

import pandas

print(pandas.io.common.os.environ)
