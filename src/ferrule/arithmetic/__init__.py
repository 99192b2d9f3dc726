"""Floor 2: arithmetic on what a model wrote, without `eval`."""
