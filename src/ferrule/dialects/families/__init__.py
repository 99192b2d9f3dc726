"""The families of models, by who makes them: each a declaration on a syntax of `notations/`.

Adding a family is adding a file, or a declaration to one, with the families in its `FAMILIES`: `catalogue` finds them.
"""
