"""Let the logging module open a file on the host.

family: write outside
canary: folder
stops: full, container
root: no
"""

import logging

logging.basicConfig(filename=FOLDER + "/log.txt")
logging.warning("written")
