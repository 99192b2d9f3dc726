"""Get at an error through except*, whose handler some filters leave out.

family: frames
canary: secret
stops: full, container
root: no
related: CVE-2025-22153
"""

try:
    raise ExceptionGroup("group", [ValueError(open)])
except* ValueError as group:
    print(group.exceptions[0].args[0](SECRET_FILE).read())
