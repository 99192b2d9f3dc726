"""Change the limits of whoever started this process.

family: parent
canary: parent_limits, claim
stops: full, container
root: no
alone: yes
"""

import resource

soft, hard = resource.prlimit(PARENT, resource.RLIMIT_CORE)
resource.prlimit(PARENT, resource.RLIMIT_CORE, (max(0, min(soft, 1 << 40) - 4096) if soft else min(4096, hard), hard))
print(CLAIM)  # both may be 0 already
