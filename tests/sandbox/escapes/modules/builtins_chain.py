"""Reach the builtins through a module of text.

family: modules
canary: secret
stops: full, container
root: no
related: CVE-2026-53753
"""

import json

print(json.codecs.builtins.open(SECRET_FILE).read())
