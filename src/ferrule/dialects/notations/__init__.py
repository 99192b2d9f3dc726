"""The ways to write a call, one per file; a family of models is a declaration based on one of them."""
