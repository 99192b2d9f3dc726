"""Write a program and run it by its path.

family: evaluators
canary: secret
stops: full, container
root: no
"""

import runpy

open("program.py", "w").write(f"print(open({SECRET_FILE!r}).read())")
runpy.run_path("program.py")
