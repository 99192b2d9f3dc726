"""What a pipeline is made of: one run with its limits, steps and output, and many runs at once."""
