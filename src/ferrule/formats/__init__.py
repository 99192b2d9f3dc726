"""Conversation files, read and written: ferrule's own format and those of other systems.

Pure functions between decoded JSON and `Conversation`. `detection` recognises formats and finds each by its name.
"""
