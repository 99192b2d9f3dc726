"""Carry code in the interpreter's own form.

family: pickles
canary: secret
stops: full, container
root: no
"""

import marshal

code = marshal.dumps(compile("print(open(SECRET_FILE).read())", "x", "exec"))
exec(marshal.loads(code))
