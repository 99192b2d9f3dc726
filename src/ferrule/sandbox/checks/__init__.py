"""Checks of model-written Python: early advice to the model, before anything runs.

They read the code's syntax tree and report what is wrong, where, and what to do instead. They don't protect anything:
code evades a list of names by building a name as a string. The sandbox contains the code.

`profiles` chooses what is checked, `syntax` parses, `advice` and `strict` walk the tree, `name_lists` holds the names
they look for, and `in_subprocess` checks long code in a process that can be killed.
"""

from ferrule.sandbox.checks.findings import Finding
from ferrule.sandbox.checks.profiles import PROFILES, CheckProfile, check, explain_findings, resolve_profile

__all__ = ["PROFILES", "CheckProfile", "Finding", "check", "explain_findings", "resolve_profile"]
