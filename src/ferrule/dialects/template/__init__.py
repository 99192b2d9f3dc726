"""Whole conversations as segments, framed by a Hugging Face chat template."""
