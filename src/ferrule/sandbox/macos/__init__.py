"""Containment by macOS's Seatbelt: a profile that `sandbox-exec` applies to a fresh process.

Written from published findings, and never run on a Mac: `selftest` decides at each start whether it holds.
"""
