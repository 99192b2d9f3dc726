"""macOS's own containment, Seatbelt: a profile that `sandbox-exec` puts on a fresh process.

Written from what others have found, and never run on a Mac: `selftest` decides at each start whether it holds.
"""
