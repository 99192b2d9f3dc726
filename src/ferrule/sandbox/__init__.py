"""Where work that a model wrote is done: the calculator evaluates an expression without running it as code.

Pure and without input or output of its own; what may be called, and by whom, is decided in `execution/`.
"""
