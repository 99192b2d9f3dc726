"""How the embedded model is made and measured: its data, its training run, its evaluation.

Nothing here is needed to use Ferrule; the training run itself needs the `train` extra.
"""
