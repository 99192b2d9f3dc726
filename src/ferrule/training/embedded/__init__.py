"""The recipe of the embedded model: its network, its training, its export and its evaluation.

Everything except the evaluation needs torch.
"""
