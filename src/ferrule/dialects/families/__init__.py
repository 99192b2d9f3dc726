"""The families of models, each a short declaration on a notation; `catalogue` finds them by name."""
