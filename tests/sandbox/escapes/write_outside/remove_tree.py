"""Delete a folder of the host with all that is in it.

family: write outside
canary: folder
stops: full, container
root: no
"""

import shutil

shutil.rmtree(FOLDER + "/kept")
