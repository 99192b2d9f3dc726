"""Whole conversations as segments, for the families that declare their turns."""
