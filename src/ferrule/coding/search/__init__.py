"""Searching the contents and names of files, by ripgrep or without it."""
