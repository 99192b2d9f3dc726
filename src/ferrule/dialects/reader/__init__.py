"""Reads what a model writes, as it arrives: text, reasoning and calls, as events."""
