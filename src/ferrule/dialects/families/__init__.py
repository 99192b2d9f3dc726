"""The families of models, by vendor: each a declaration based on a syntax of `notations/`.

To add a family, add a file, or a declaration to one, and list it in `FAMILIES`: `catalogue` finds it.
"""
