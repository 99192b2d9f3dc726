"""Measure what the processor does, a known way to holes.

family: kernel
canary: claim
stops: full, container
root: yes
"""

import ctypes
import struct

PERF_TYPE_SOFTWARE, CPU_CLOCK, ONLY_USER = 1, 0, 0b1100000
attributes = struct.pack("IIQQQQQ", PERF_TYPE_SOFTWARE, 112, CPU_CLOCK, 0, 0, 0, ONLY_USER) + bytes(64)
if ctypes.CDLL(None).syscall(NR["perf_event_open"], attributes, 0, -1, -1, 0) >= 0:
    print(CLAIM)
