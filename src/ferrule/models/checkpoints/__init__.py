"""Checkpoints in Hugging Face's layout: where one is found, what its files hold, and which engine runs it."""
