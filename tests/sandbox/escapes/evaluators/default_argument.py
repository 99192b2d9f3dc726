"""Run code in a default argument, when a function is only defined.

family: evaluators
canary: secret
stops: full, container
root: no
related: CVE-2025-3248
"""


def defined(a=print(open(SECRET_FILE).read())):
    pass
