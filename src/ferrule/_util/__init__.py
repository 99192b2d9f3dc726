"""Floor 0: helpers that know nothing of tools and models."""
