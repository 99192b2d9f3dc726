"""Find names of the host by patterns.

family: read outside
canary: secret
stops: full, container
root: no
"""

import glob

glob.glob(FOLDER + "/**", recursive=True)
