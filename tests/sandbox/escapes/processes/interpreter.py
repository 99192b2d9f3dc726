"""Start the interpreter again, without what was set up in this one.

family: processes
canary: secret
stops: full, container
root: no
"""

import subprocess
import sys

subprocess.run([sys.executable, "-c", f"print(open({SECRET_FILE!r}).read())"])
