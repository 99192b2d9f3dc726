"""Let an interactive interpreter run a line.

family: evaluators
canary: secret
stops: full, container
root: no
"""

import code

code.InteractiveInterpreter().runsource(f"print(open({SECRET_FILE!r}).read())")
