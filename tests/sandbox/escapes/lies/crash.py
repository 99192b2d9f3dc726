"""Crash the interpreter.

family: lies
canary: parent
stops: full, container
root: no
"""

import ctypes

ctypes.string_at(0)
