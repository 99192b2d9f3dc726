"""Catch every error and begin again.

family: time
canary: time
stops: full, container
root: no
seconds: 0.2
"""

import signal


def stop(*_):
    raise SystemExit


signal.signal(signal.SIGTERM, stop)
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
