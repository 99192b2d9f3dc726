"""Floor 7: the loop between a model and its tools, and what a run of it is made of."""
