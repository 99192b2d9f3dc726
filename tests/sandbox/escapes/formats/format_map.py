"""Read the environment through format_map.

family: formats
canary: secret
stops: full, container
root: no
related: CVE-2023-41039
"""

import logging

print("{logging.os.environ}".format_map({"logging": logging}))
