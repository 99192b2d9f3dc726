"""Let annotations be evaluated.

family: evaluators
canary: secret
stops: full, container
root: no
"""

import typing


def annotated(a: "print(open(SECRET_FILE).read())"): ...


typing.get_type_hints(annotated)
