"""How the embedded model is trained and measured: its data, its training run, its evaluation.

Nothing here is needed to use ferrule; the training run itself needs the `train` extra.
"""
