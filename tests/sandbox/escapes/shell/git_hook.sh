# Leave a hook that runs when the user commits.
#
# family: shell
# canary: workspace
# stops: full, container
# root: no

printf '#!/bin/sh\ntouch owned\n' > .git/hooks/pre-commit
