"""The recipe of the embedded model: its network, its training, its export and its evaluation.

All but the evaluation need torch.
"""
