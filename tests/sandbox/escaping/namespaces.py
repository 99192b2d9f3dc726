"""Prints as JSON the namespaces that this process is in, by kind."""

import json
from pathlib import Path

print(json.dumps({link.name: str(link.readlink()) for link in Path("/proc/self/ns").iterdir()}))
