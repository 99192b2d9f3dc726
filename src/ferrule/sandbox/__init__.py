"""Runs model-written code, contained by the operating system.

`python` and `shell` run code and commands; `checks` read code and give advice. Which calls may run is decided in
`execution/`.
"""
