"""Lower the limits of a process of the machine.

family: parent
canary: victim
stops: full, container
root: no
"""

import resource

resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (5, 5))
