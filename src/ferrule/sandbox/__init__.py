"""Where work that a model wrote is done, and cannot leave.

The calculator evaluates an expression without running it as code; `python` and `shell` run code contained by the
operating system; `checks` read code and advise. What may be called, and by whom, is decided in `execution/`.
"""
