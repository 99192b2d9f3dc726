"""Floor 2: arithmetic on model-written expressions, without `eval`."""
