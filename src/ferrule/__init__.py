"""Ferrule binds tools to language models."""

__version__ = "0.1.0"
