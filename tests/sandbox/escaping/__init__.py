"""What runs the payloads of `escapes`: canaries outside, plain subprocesses, and the sandbox in each circumstance.

`payloads` reads them, `field` and `victim` hold what they aim at, `census` counts what they use, `plain` and
`contained` run them, `corpus` runs all and reports, `circumstances` starts it as root, as an ordinary user, or under
the filter of an ordinary container.
"""
