"""The coding agent on a terminal: a prompt that stays at the bottom, what happens printed above it, nothing else.

It doesn't take over the screen: what was printed stays in the terminal's own scrollback, and can be selected there.
"""
